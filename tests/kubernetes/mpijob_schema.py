"""The fields of an MPIJob, v2beta1, as the operator documents them (manifests/base/kubeflow.org_mpijobs.yaml).

Only those that a job of ours could have; all others are refused. Pod templates are held against Kubernetes' own schema.
"""

_POSITIVE = {"type": "integer", "minimum": 1}
_NATURAL = {"type": "integer", "minimum": 0}


def _object(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


# A template says nothing about restarts: the operator replaces that, with a warning.
_TEMPLATE = _object(
    ("spec",),
    metadata=_object(labels={"type": "object"}, annotations={"type": "object"}),
    spec={"type": "object", "not": {"required": ["restartPolicy"]}, "required": ["containers"]},
)
_REPLICA = _object(
    ("template",), replicas=_POSITIVE, restartPolicy={"enum": ["Never", "OnFailure"]}, template=_TEMPLATE
)

SCHEMA = _object(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "kubeflow.org/v2beta1"},
    kind={"const": "MPIJob"},
    metadata=_object(("name",), name={"type": "string"}, namespace={"type": "string"}),
    spec=_object(
        ("mpiReplicaSpecs",),
        launcherCreationPolicy={"enum": ["AtStartup", "WaitForWorkersReady"]},
        mpiImplementation={"enum": ["OpenMPI", "Intel", "MPICH"]},
        mpiReplicaSpecs=_object(("Launcher", "Worker"), Launcher=_REPLICA, Worker=_REPLICA),
        runLauncherAsWorker={"type": "boolean"},
        runPolicy=_object(
            activeDeadlineSeconds=_POSITIVE,
            backoffLimit=_NATURAL,
            cleanPodPolicy={"enum": ["None", "Running", "All"]},
            suspend={"type": "boolean"},
            ttlSecondsAfterFinished=_NATURAL,
        ),
        slotsPerWorker=_POSITIVE,
        sshAuthMountPath={"type": "string", "pattern": "^/"},
    ),
)
