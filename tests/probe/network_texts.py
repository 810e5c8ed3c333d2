"""What ibv_devinfo and ucx_info print of adapters, in the form of their sources, and shortened."""


def devinfo(*devices: str, tags: int = 127, groups: int = 2097152) -> str:
    """Return what `ibv_devinfo -v` of rdma-core prints; `tags` 0: the adapter matches none."""
    matching = (
        f"\tmax_rndv_hdr_size:\t\t64\n\tmax_num_tags:\t\t\t{tags}\n\tmax_ops:\t\t\t32768\n\tmax_sge:\t\t\t1\n"
        "\tflags:\n\t\t\t\t\tIBV_TM_CAP_RC\n"
        if tags
        else "\ttag matching not supported\n"
    )
    return "".join(
        f"hca_id:\t{device}\n\ttransport:\t\t\tInfiniBand (0)\n\tvendor_part_id:\t\t\t4129\n"
        f"\tmax_sge:\t\t\t30\n\tmax_mcast_grp:\t\t\t{groups}\n\tmax_mcast_qp_attach:\t\t240\n"
        f"\tmax_pkeys:\t\t\t128\n\tgeneral_odp_caps:\n\t\t\t\t\tODP_SUPPORT\n{matching}\n"
        "\tcq moderation caps:\n\t\tmax_cq_count:\t65535\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
        "\t\t\tactive_mtu:\t\t4096 (5)\n\t\t\tlink_layer:\t\tInfiniBand\n\n"
        for device in devices
    )


def transports(*names: str, device: str = "mlx5_0:1", old: bool = False) -> str:
    """Return what `ucx_info -d` prints of transports on one device; `old`: as releases before 1.12 set it."""
    lead = "  " if old else "     "
    parts = ["#\n# Memory domain: mlx5_0\n#     Component: ib\n#             register: unlimited, cost: 180 nsec\n"]
    parts += [
        f"#\n#{lead} Transport: {name}\n#{lead}{'' if old else '   '} Device: {device}\n#           Type: network\n"
        "#\n#      capabilities:\n#            bandwidth: 46909.68/ppn + 0.00 MB/sec\n"
        for name in names
    ]
    return "".join(parts)


SETTINGS = (
    "#\n# UCX library configuration file\n#\n\nUCX_TLS=all\nUCX_IB_GPU_DIRECT_RDMA=try\nUCX_DC_MLX5_TM_ENABLE=n\n"
    "UCX_RC_MLX5_TM_ENABLE=n\nUCX_RC_MLX5_PKEY=auto\n"
)
