"""The streams and all that they need become the members of a NEFF.

Before:
    program copy target=cayman gen=3
    var x id=1 kind=input dtype=float32 shape=(2,4)
    var out id=2 kind=output dtype=float32 shape=(2,4)
    queue qSP owner=SP semaphore=12 num_queues=16
    stream PE
    stream Activation
    stream Pool
    stream DVE
    stream SP
      DmaDirect2d semaphore=12 sem_increment=16 src=v1+0x0 src_size=32 dst=v2+0x0 dst_size=32 src_dtype=float32 dst_dtype=float32
      Exit wait=S12>=16

After:
    member info.json text
      {
       "arch": "cayman",
       "digest": "d03334117fa0b7c722296cb9a0ff0f382c527fe3c94c0e5ce8a2e8af874b6611",
       "engines": {
        "act": false,
        "dve": false,
        "pe": false,
        "pool": false,
        "sp": true
       },
       "header": {
        "feature_bits": 4096,
        "lnc_size": 1,
        "name": "copy",
        "neff_build_version": "ncc-0.1.0",
        "neff_version_major": 2,
        "neff_version_minor": 0,
        "num_tpb": 1,
        "pkg_version": 2,
        "requested_tpb_count": 1,
        "tpb_per_node": [
         1
        ],
        "uuid": "d03334117fa047c7a2296cb9a0ff0f38"
       },
       "name": "copy",
       "version": [
        1,
        0
       ]
      }
    member kelf-0.json text
      {
       "graphs": [
        {
         "definition": "sg00/def.json",
         "name": "sg00"
        }
       ],
       "target": "cayman",
       "version": "0.5"
      }
    member neff.json text
      {
       "arg_nodes": [
        0
       ],
       "heads": [
        [
         1,
         0,
         0
        ]
       ],
       "nodes": [
        {
         "attrs": {
          "is_param": "0"
         },
         "inputs": [],
         "name": "x",
         "op": "null"
        },
        {
         "attrs": {
          "flatten_data": "0",
          "func_name": "0",
          "kelf": "kelf-0.json",
          "num_inputs": "1",
          "num_outputs": "1",
          "tvm_op": "sg_coreV10"
         },
         "inputs": [
          [
           0,
           0,
           0
          ]
         ],
         "name": "sg_coreV10",
         "op": "__kelf",
         "output_names": [
          "out"
         ]
        }
       ],
       "target_arch": "cayman",
       "version": "0.5"
      }
    member sg00/Activation0.bin bytes
    member sg00/Activation0.json text
      {
       "activation_function_sets": [],
       "dma": []
      }
    member sg00/DVE0.bin bytes
    member sg00/DVE0.json text
      {
       "dma": []
      }
    member sg00/PE0.bin bytes
    member sg00/PE0.json text
      {
       "dma": []
      }
    member sg00/Pool0.bin bytes
    member sg00/Pool0.json text
      {
       "dma": []
      }
    member sg00/SP0.bin bytes
      d41000000000000000000000000c1000000000000100001000000000000000000100010020000000000000000200001000000000000000000100010020000a0a  # DmaDirect2d semaphore=12 sem_increment=16 src=v1+0x0 src_size=32 dst=v2+0x0 dst_size=32 src_dtype=float32 dst_dtype=float32
      df100000050c00001000000001000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000  # Exit wait=S12>=16
    member sg00/SP0.json text
      {
       "dma": []
      }
    member sg00/def.json text
      {
       "act": "Activation0.json",
       "act_instr": "Activation0.bin",
       "dma_queue": {
        "qSP": {
         "num_queues": 16,
         "owner": "sp",
         "semaphore": 12,
         "type": "dynamic"
        }
       },
       "dve": "DVE0.json",
       "dve_instr": "DVE0.bin",
       "name": "definition",
       "pe": "PE0.json",
       "pe_instr": "PE0.bin",
       "pool": "Pool0.json",
       "pool_instr": "Pool0.bin",
       "sp": "SP0.json",
       "sp_instr": "SP0.bin",
       "var": {
        "out": {
         "dtype": "float32",
         "shape": [
          2,
          4
         ],
         "size": 32,
         "type": "output",
         "var_id": 2
        },
        "sb": {
         "size": 33554432,
         "type": "state-buffer",
         "var_id": 0
        },
        "x": {
         "dtype": "float32",
         "shape": [
          2,
          4
         ],
         "size": 32,
         "type": "input",
         "var_id": 1
        }
       },
       "version": "0.6"
      }
    member sg00/tensor_map.json text
      {
       "alias_map": [],
       "inputs": [
        {
         "dtype": "float32",
         "name": "x",
         "shape": [
          2,
          4
         ]
        }
       ],
       "outputs": [
        {
         "dtype": "float32",
         "name": "out",
         "shape": [
          2,
          4
         ]
        }
       ]
      }

Why:
    A runtime takes one file. Beside the five streams it holds what a loader must know before they
    run: which DRAM variables there are, which of them are arguments, which semaphore a DMA queue
    raises, and the bytes of the constants. A digest over all of that is the file's identity, so
    the same program gives the same file. Each core of a program has a subgraph of its own. How the
    members are wrapped is decided when the file is written.
"""

from __future__ import annotations

from ncc.ir.core import Cores
from ncc.ir.isa import Program
from ncc.ir.neff import Neff
from ncc.pack import build
from ncc.passes.base import define
from ncc.target import Target


def apply(program: Program | Cores, target: Target) -> Neff:
    return build(program)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="isa",
    target="neff",
    real="neff_packager",
    job="W0",
    sure="confirmed",
    together=True,
)
