"""What a run is listed under: the platform it was made on, as far as its plan tells."""

from collections import Counter

from busbw.model.plan import Plan


def platform_of(plan: Plan) -> str | None:
    """Return the platform of the planning host where it was recognised, else its GPUs or its processor in words."""
    if plan.surroundings is not None and plan.surroundings.platform is not None:
        return plan.surroundings.platform
    if plan.gpus is None:
        return plan.host.cpu_model
    models = Counter(device.model for device in plan.gpus.devices)
    return ", ".join(f"{number}x {model}" for model, number in models.items())
