"""`.indirect`: an operand whose elements an index tile chooses, a form that only trn3 has.

gen3 bundles lack it, so the elements are gathered to a tile just before the instruction that reads
them: for the vector, scalar and gpsimd engines the order of the indices, down the 16 partitions of
each group and then along the columns, is that of `nisa.local_gather`. The tensor engine's order
(groups of 32) and a written operand have no such equal and are refused.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self

from ncc.ir.kernel import Access
from ncc.nki.regions import sbuf
from ncc.nki.tensor import NkiTensor
from ncc.nki.trace import current, invalid, wrong_shape
from ncc.nki.views import whole_number

GATHER = "gather first: nisa.nc_n_gather or nisa.local_gather"
TENSOR_ENGINE = ("nc_matmul", "nc_transpose", "nc_matmul_mx")


class Gathered(NkiTensor):
    """The tile that receives the elements; it is filled anew for each instruction that reads it."""

    __slots__ = ("data", "index")

    data: NkiTensor
    index: NkiTensor

    def derived(self, *args: Any, **more: Any) -> NoReturn:
        raise self._refused("a view of .indirect", "it is used as it is", GATHER)

    def retyped(self, *args: Any, **more: Any) -> NoReturn:
        raise self._refused("a view of .indirect", "it is used as it is", GATHER)

    def is_indirect(self) -> bool:
        return True

    def access(self, role: str = "", *, compute: bool = True, write: bool = False) -> Access:
        if write or role.startswith(TENSOR_ENGINE):
            what = "written by" if write else "an operand of"
            said = f"{self.data.name}.indirect is {what} {role}, which gen3 bundles cannot do"
            raise invalid("NCC323", said, GATHER)
        from ncc.nki.isa import local_gather

        whole = NkiTensor.whole(self.storage, self.dtype)
        local_gather(whole, self.data, self.index, num_valid_indices=self.shape[1])
        return super().access(role, compute=compute)

    @classmethod
    def of(cls, data: Any, index: Any, num_elem: Any) -> Self:
        """The operand `data.indirect(index, num_elem)`."""
        from ncc.nki.memory import allocate

        if current(".indirect").target.level < 40:
            said = f".indirect of {data.name}: tensor indirection is a form of operand of trn3"
            raise invalid("NCC323", said, GATHER)
        if not isinstance(index, NkiTensor) or data.buffer != sbuf or index.buffer != sbuf:
            said = f".indirect of {data.name}: data and index are tiles in SBUF"
            raise invalid("NCC323", said, GATHER)
        most = 16 * index.size // index.shape[0]
        count = most if num_elem is None else whole_number(num_elem, ".indirect: num_elem")
        if not 0 < count <= most or index.shape[0] != data.shape[0]:
            said = (
                f".indirect of {data.name}: {count} elements of {data.shape[0]} partitions, and "
                f"{index.name} {index.shape} holds {most} indices for each 16 of its partitions"
            )
            raise wrong_shape("NCC323", said, "ask for fewer elements, or give more indices")
        tile = allocate((data.shape[0], count), data.dtype, sbuf, f"{data.name}_gathered")
        made = cls.whole(tile.storage, tile.dtype)
        made.data, made.index = data, index
        return made
