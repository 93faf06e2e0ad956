"""The kernels of rules 330 to 359: what breaks each of them, and the same repaired."""

from __future__ import annotations

from ncc.rules.nki_examples import RUN

LINES: dict[str, tuple[str, ...]] = {
    "NCC330": (
        "nisa.tensor_copy(dst=t, source=t)",
        "nisa.tensor_copy(dst=t, src=t)",
    ),
    "NCC331": (
        "nisa.tensor_copy(dst=t, src=[t, t])",
        "nisa.tensor_copy(dst=t, src=[t, t][0])",
    ),
    "NCC332": (
        "nisa.tensor_scalar(dst=t, data=x, op0=nl.multiply, operand0=2.0)",
        "nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)",
    ),
    "NCC333": (
        "nisa.tensor_copy(dst=t[0:32, :], src=t)",
        "nisa.tensor_copy(dst=t[0:32, :], src=t[32:64, :])",
    ),
    "NCC334": (
        "nisa.tensor_copy(dst=t[:, 0:16], src=t)",
        "nisa.tensor_copy(dst=t[:, 0:16], src=t[:, 16:32])",
    ),
    "NCC336": (
        """
        nisa.memset(dst=y, value=1.0)
        wide = nl.ndarray((128, 32), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=wide, stationary=y[:, 0:256], moving=t)
        """,
        """
        nisa.memset(dst=y, value=1.0)
        wide = nl.ndarray((128, 32), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=wide, stationary=y[:, 0:128], moving=t)
        """,
    ),
    "NCC337": (
        """
        nisa.memset(dst=y, value=1.0)
        wide = nl.ndarray((32, 1024), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=wide, stationary=t, moving=y)
        """,
        """
        nisa.memset(dst=y, value=1.0)
        wide = nl.ndarray((32, 1024), nl.float32, buffer=nl.psum)
        for k in range(2):
            part = slice(512 * k, 512 * k + 512)
            nisa.nc_matmul(dst=wide[:, part], stationary=t, moving=y[:, part])
        """,
    ),
    "NCC338": (
        """
        nisa.tensor_copy(dst=b, src=t)
        nisa.activation(dst=t, op=nl.exp, data=t, scale=b[:, 0:1])
        """,
        """
        nisa.tensor_copy(dst=c, src=t[:, 0:1])
        nisa.activation(dst=t, op=nl.exp, data=t, scale=c)
        """,
    ),
    "NCC339": (
        "nisa.nc_transpose(dst=b[0:32, :], data=t[0:32, :])",
        """
        turned = nl.ndarray((32, 32), nl.float32, buffer=nl.sbuf)
        nisa.nc_transpose(dst=turned, data=t[0:32, :])
        nisa.tensor_copy(dst=b[0:32, :], src=turned)
        """,
    ),
    "NCC340": (
        """
        nisa.tensor_copy(dst=b, src=t)
        nisa.nc_matmul(dst=p, stationary=t, moving=b)
        """,
        """
        nisa.tensor_copy(dst=b, src=t)
        nisa.nc_matmul(dst=p, stationary=b, moving=b)
        """,
    ),
    "NCC341": (
        "nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.exp)",
        "nisa.activation(dst=t, op=nl.exp, data=t)",
    ),
    "NCC342": (
        "nisa.tensor_scalar(dst=t, data=t, op0=nl.bitwise_and, operand0=1)",
        """
        nisa.tensor_copy(dst=i, src=t)
        nisa.tensor_scalar(dst=i, data=i, op0=nl.bitwise_and, operand0=1)
        """,
    ),
    "NCC343": (
        "nisa.tensor_copy(dst=t, src=t, engine=nisa.engine.tensor)",
        "nisa.tensor_copy(dst=t, src=t, engine=nisa.engine.vector)",
    ),
    "NCC344": (
        """
        nisa.nc_matmul(dst=p, stationary=t, moving=t)
        nisa.nc_matmul(dst=q, stationary=t, moving=t)
        nisa.tensor_tensor(dst=t[0:32, :], data1=p, data2=q, op=nl.add)
        """,
        """
        nisa.nc_matmul(dst=p, stationary=t, moving=t)
        nisa.nc_matmul(dst=q, stationary=t, moving=t)
        nisa.tensor_copy(dst=t[0:32, :], src=p)
        nisa.tensor_tensor(dst=t[0:32, :], data1=t[0:32, :], data2=q, op=nl.add)
        """,
    ),
    "NCC345": (
        "nisa.memset(dst=i, value=0.5)",
        "nisa.memset(dst=i, value=1)",
    ),
    "NCC346": (
        "nisa.activation(dst=t, op=nl.exp, data=t, bias=t)",
        "nisa.activation(dst=t, op=nl.exp, data=t, bias=t[:, 0:1])",
    ),
    "NCC347": (
        "nisa.dma_transpose(dst=t[0:32, :], src=x[0:32, :])",
        "nisa.nc_transpose(dst=t[0:32, :], data=t[0:32, :])",
        f"{RUN} --target trn1",
    ),
    "NCC348": (
        "nisa.nc_matmul_mx(p, t, t, stationary_scale=i, moving_scale=i)",
        "nisa.nc_matmul(p, t, t)",
    ),
    "NCC349": (
        "nisa.tensor_reduce(dst=c, op=nl.add, data=t, axis=0)",
        "nisa.tensor_reduce(dst=c, op=nl.add, data=t, axis=1)",
    ),
    "NCC350": (
        """
        nisa.memset(dst=p[0:8, 0:8], value=0.0)
        nisa.nc_matmul(dst=p, stationary=t, moving=t)
        """,
        "nisa.nc_matmul(dst=p, stationary=t, moving=t)",
    ),
    "NCC351": (
        'nisa.tensor_copy(dst=t, src=t, engine="vectr")',
        "nisa.tensor_copy(dst=t, src=t, engine=nisa.engine.vector)",
    ),
    "NCC352": (
        "nisa.dma_copy(dst=b, src=x, dge_mode=nisa.dge_mode.hwdge)",
        "nisa.dma_copy(dst=b, src=x)",
    ),
    "NCC353": (
        "nisa.dma_transpose(dst=t, src=x)",
        "nisa.dma_transpose(dst=t[0:32, :], src=x[0:32, :])",
    ),
    "NCC354": (
        "nisa.nc_matmul(dst=p, stationary=t, moving=t, tile_position=(0, 0))",
        """
        nisa.nc_matmul(
            dst=p, stationary=t, moving=t, tile_position=(0, 0), tile_size=(64, 128)
        )
        """,
    ),
    "NCC355": (
        "nisa.core_barrier(data=out, cores=(0, 1))",
        """
        if nl.num_programs(0) == 2:
            nisa.core_barrier(data=out, cores=(0, 1))
        """,
    ),
    "NCC356": (
        "nisa.max8(dst=c, src=t)",
        "nisa.max8(dst=t[:, 0:8], src=t)",
    ),
    "NCC357": (
        """
        nisa.memset(dst=i, value=3)
        r = nisa.register_alloc(0)
        nisa.register_load(dst=r, src=i[0:1, 0:4])
        """,
        """
        nisa.memset(dst=i, value=3)
        r = nisa.register_alloc(0)
        nisa.register_load(dst=r, src=i[0:1, 0:1])
        """,
    ),
    "NCC358": (
        """
        nisa.tensor_scalar_reduce(
            dst=t, data=t, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=c,
            reduce_cmd=nisa.reduce_cmd.load_reduce,
        )
        """,
        """
        nisa.tensor_scalar_reduce(
            dst=t, data=t, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=c,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        """,
    ),
}
