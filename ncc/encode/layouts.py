"""Where each field of a bundle stands: one small table per struct family.

A field is `offset kind name`, offset in hexadecimal; one or two stand on a line.
`ncc.encode.tables` says what the kinds are and which opcode has which layout. Bytes 00 to 0B
(opcode, length 10, event band) belong to every layout but DA's. A byte that no field covers must
be zero. Sources: ISA reference, section 5.
"""

from __future__ import annotations

LAYOUTS: dict[str, str] = {
    "NONE": "",
    # An opcode whose bytes are not known: kept as they are.
    "RAW": "0C bytes52 raw",
    # PE. Byte 0C (bg_xpose_mode) and 2F of S3_LW are generation 4's and stay zero.
    "S3_LW": """
        10 T3D src                        20 dtype in_dtype
        21 fp32_mode fp32_mode            22 u8 transpose_mode
        23 u8 perf_opt                    24 u16 quant_offset
        26 u8 num_active_rows             27 u8 num_active_cols
        2C u8 row_grp                     2D u8 col_grp
        2E u8 xbus_sel
    """,
    "S3D3_MM": """
        10 T3D moving                     20 dtype in_dtype
        21 fp32_mode fp32_mode            22 u8 transpose_mode
        23 u8 perf_opt                    24 u16 quant_offset
        26 u8 num_active_rows             27 u8 num_active_cols
        28 dtype out_dtype                2B u8 psum_flags
        2C u8 row_grp                     2D u8 col_grp
        2E u8 xbus_sel                    2F u8 psum_zero_region
        30 T3D dst
    """,
    "S3_LT": """
        10 T3D tags                       20 dtype tags_dtype
        21 u8 col_code                    26 u8 tile_size
        2C u8 row_grp
    """,
    "S4D3_MM": """
        0C T4D moving                     20 dtype in_dtype
        21 fp32_mode fp32_mode            22 dtype out_dtype
        26 u8 num_active_rows             27 u8 num_active_cols
        2B u8 fp32_pass                   2C u8 row_grp
        2D u8 col_grp                     2E u8 active_row_mode
        30 T3D dst
    """,
    # Activation
    "S3D3_AC": """
        0C imm_src imm_src                0D imm_src scale_src
        0E acc accumulator_cmd            0F bias_src bias_src_n
        10 T3D src                        20 lo in_dtype
        20 hi bias_dtype                  21 dtype out_dtype
        22 u8 nchan                       23 func act_func
        24 imm scale                      28 imm bias
        2C imm imm                        30 T3D dst
    """,
    "S3D3_AQ": """
        0C u8 quant_scale                 0D imm_src scale_src
        0E acc accumulator_cmd            0F bias_src bias_src_n
        10 T3D src                        20 lo in_dtype
        20 hi bias_dtype                  21 dtype out_dtype
        22 u8 nchan                       23 func act_func
        24 imm dequant_scale              28 imm bias
        2C imm zero_point                 30 T3D dst
    """,
    "TABLE": "23 u8 table_set",
    "D1_RD": """
        1C u32 count                      20 dtype out_dtype
        21 u8 negated                     22 u8 nchan
        2C T1D dst
    """,
    # Vector and Pool
    "S3S3D3_TT": """
        0C lo src0_dtype                  0C hi src1_dtype
        0D dtype out_dtype                0E alu op
        0F u8 nchan                       10 T3D src0
        20 T3D src1                       30 T3D dst
    """,
    "S3D3_TS": """
        0C acc accumulator_cmd            10 T3D src
        20 dtype in_dtype                 21 dtype out_dtype
        22 u8 nchan                       23 imm_src imm0_src
        24 alu op0                        25 alu op1
        26 u8 reverse                     27 imm_src imm1_src
        28 imm imm0                       2C imm imm1
        30 T3D dst
    """,
    "S2S2D2_STT": """
        0C T2D src0                       18 T2D src1
        24 alu op0                        25 alu op1
        26 u8 reverse                     27 imm_src imm0_src
        28 lo src0_dtype                  28 hi src1_dtype
        29 dtype out_dtype                2A u8 nchan
        2B dtype imm0_dtype               2C acc accumulator_cmd
        30 T2D dst                        3C imm imm0
    """,
    "S4D4_TR": """
        0C T4D src                        20 dtype in_dtype
        21 dtype out_dtype                22 u8 nchan
        23 u8 negated                     24 alu op
        25 u8 op_dim                      26 u8 mask_enable
        2C T4D dst
    """,
    "S4D4_CR": """
        0C T4D src                        20 dtype in_dtype
        21 dtype out_dtype                22 u8 nchan
        23 u8 reduce_op                   24 u8 reduce_axis
        28 imm scale                      2C T4D dst
    """,
    "S4D4_PL": """
        0C T4D src                        20 dtype in_dtype
        21 dtype out_dtype                22 u8 nchan
        24 u8 pool_func                   25 u8 pool_dim
        28 imm scale                      2C T4D dst
    """,
    "S4D4_MR": """
        0C T4D src                        20 dtype in_dtype
        21 dtype out_dtype                22 u8 nchan
        28 imm replacement                2C T4D dst
    """,
    "D4_MR": """
        1C u32 count                      20 dtype out_dtype
        22 u8 nchan                       24 u8 serialization_mode
        28 u32 set_value                  2C T4D dst
    """,
    "D4_IOTA": """
        0C D4D pattern                    21 dtype out_dtype
        22 u8 nchan                       24 i32 channel_multiplier
        2C T4D dst
    """,
    "S2D2_TS_AS": """
        0C u8 nchan                       0D lo in_dtype
        0D hi out_dtype                   0E u8 fill_mode
        0F u8 fill_reg                    10 D4D pattern
        24 T2D src                        30 T2D dst
        3C i32 channel_multiplier
    """,
    "S2D2_RS": """
        0C u8 nchan                       0D lo in_dtype
        0D hi out_dtype                   0E acc reduce_cmd
        0F alu reduce_op                  10 imm base
        14 imm fill                       18 T2D src
        24 alu comp_op0                   25 alu comp_op1
        26 imm_src bound0_src             27 imm_src bound1_src
        28 imm bound0                     2C imm bound1
        30 T2D dst
    """,
    "S3D3_CP_PRED_SCALAR": """
        10 T3D predicate                  20 dtype pred_dtype
        21 u8 reversed_pred               22 u8 nchan
        29 dtype in_dtype                 2A dtype out_dtype
        2B imm_src imm_src                2C imm imm
        30 T3D dst
    """,
    "MASK": "20 bytes32 mask",
    "S4D2_BN": """
        0C T4D src                        20 dtype in_dtype
        21 dtype out_dtype                22 u8 nchan
        28 imm even_count                 2C imm odd_count
        30 T2D dst
    """,
    "MATCH": """
        10 T2D src
        20 dtype in_dtype
        22 u8 nchan
    """,
    # Our own choice: the threshold stands at 2C, because byte 2B holds the mode.
    "DROPOUT": """
        10 T3D src                        20 dtype in_dtype
        21 dtype out_dtype                22 u8 nchan
        23 imm_src threshold_src          24 dtype threshold_dtype
        2B u8 mode                        2C imm threshold
        30 T3D dst
    """,
    "INDIRECT": """
        0C A4 index                       10 A4 src
        14 u16 num                        20 dtype in_dtype
        21 dtype out_dtype                22 u8 nchan
        23 u8 per_index                   26 u16 buffer_size
        2C T4D dst
    """,
    "NONZERO": """
        0C u8 nchan                       0D dtype in_dtype
        0E dtype out_dtype                10 T3D src
        20 imm index_offset               28 imm pad_value
        2C T3D dst
    """,
    # Our own choices, from here to CUSTOM_OPERAND: opcodes whose bytes nobody has written down.
    "CORES": """
        0C T4D src                        20 dtype in_dtype
        21 dtype out_dtype                22 u8 nchan
        2C T4D dst
    """,
    "BUFFER": """
        0C T4D src                        20 dtype in_dtype
        22 u8 nchan
    """,
    "STATE": """
        20 dtype out_dtype                22 u8 nchan
        2C T4D dst
    """,
    "UNIFORM": """
        0C imm_src imm0_src               0D imm_src imm1_src
        10 imm imm0                       14 imm imm1
        21 dtype out_dtype                22 u8 nchan
        2C T4D dst
    """,
    "CUSTOM": """
        0C u8 function                    0D u8 tensors
        10 u32 n                          14 u32 k
    """,
    "CUSTOM_OPERAND": """
        0C T4D tensor                     20 dtype dtype
        22 u8 nchan                       23 u8 number
    """,
    # Synchronisation, registers, control
    "EVENTS": """
        20 u8 wait2_mode                  21 u8 wait2_idx
        22 u8 update2_mode                23 u8 update2_idx
        24 u32 wait2_value                28 u32 update2_value
    """,
    "DRAIN": "28 u8 count",
    "RANGE": """
        0C u8 mode                        0D u8 first
        0E u8 last                        20 bytes32 mask
    """,
    "ORDER": "0C u8 mode",
    "BARRIER": """
        0C u8 id
        10 u32 index
        20 T4D src
    """,
    "MOVE": """
        0C u8 count                       0D dtype dtype
        0E u8 source                      10 bytes8 src_regs
        18 bytes8 dst_regs                20 imm imm0
        24 imm imm1
    """,
    "CTRL_AL": """
        0C alu op                         0D dtype src_dtype
        0E u8 source                      0F dtype dst_dtype
        10 u8 src0_lo                     11 u8 src0_hi
        12 u8 src1_lo                     13 u8 src1_hi
        14 u8 dst_lo                      15 u8 dst_hi
        18 i64 imm
    """,
    "REG_TENSOR": """
        0C dtype dtype                    0E u8 num0
        0F u8 num1                        10 u32 var
        14 u32 offset                     18 i32 step0
        1C i32 step1                      20 u8 reg0
        21 u8 reg1
    """,
    "BRANCH": """
        0C u8 compare                     0D dtype dtype
        0E u8 target_mode                 10 i32 imm
        20 u8 left                        21 u8 right
        22 u8 target_lo                   23 u8 target_hi
        30 i32 target
    """,
    "LABEL": "30 u32 label",
    "BEGIN": """
        0C name36 name                    30 u8 reset_semaphores
        31 u8 return_lo                   32 u8 return_hi
    """,
    "CALL": """
        0C name36 name
        30 u32 arguments
    """,
    # DMA. A size counts bytes, 1 to 65536; steps count bytes.
    "DIRECT2D": """
        0C u8 qos                         0D u8 semaphore
        0E u8 sem_increment               0F dge_op dge_op
        10 A8 src                         18 steps src_step
        20 nums src_num                   24 size src_size
        26 u8 bound_reg                   27 u8 offset_reg
        28 A8 dst                         30 steps dst_step
        38 nums dst_num                   3C size dst_size
        3E dtype src_dtype                3F dtype dst_dtype
    """,
    "MEMCPY": """
        0C u8 qos                         0D u8 semaphore
        0E u8 sem_increment               0F u8 compute_op
        10 A8 src                         18 steps src_step
        20 nums src_num                   24 size src_size
        26 u8 bound_reg                   27 u8 offset_reg
        28 A8 dst                         30 steps dst_step
        38 nums dst_num                   3C size dst_size
        3E dtype src_dtype                3F dtype dst_dtype
    """,
    "DA": """
        01 u8 indirect_flags              02 u8 index_channels
        03 u8 compute_op                  04 u32 src_index
        08 u32 dst_index                  0C u32 src_bound_lo
        10 u32 dst_bound_lo               14 i32 tile_src_row_step
        18 u8 tile_src_rows               19 u8 tile_src_cols
        38 u32 src_bound_hi               3C u32 dst_bound_hi
    """,
    "DMA_TRANSPOSE": """
        0C u8 src_bound_reg               0D u8 dst_bound_reg
        0E dtype in_dtype                 0F dtype out_dtype
        10 A8 src                         18 steps src_step
        20 nums src_num                   24 i32 tile_src_row_step
        28 A8 dst                         30 steps dst_step
        38 nums dst_num                   3C u8 tile_rows
        3D u8 tile_cols                   3E u8 semaphore
        3F u8 config
    """,
    "TRIGGER": """
        0C name32 queue
        30 u32 block
    """,
    "REARM": "0C name32 queue",
    "SWAP": """
        0C name32 queue
        3B u8 instance_flag
        3C u32 one
    """,
    "GATHER": """
        0C A4 index                       10 i32 index_step0
        14 i32 index_step1                18 u32 index_num0
        1C u32 index_num1                 20 A4 data
        24 i32 data_step0                 28 i32 data_step1
        2C u32 data_num0                  30 u32 data_num1
        34 u32 bytes                      38 u16 table
        3A u16 value_lo                   3C u8 save
        3E u16 value_hi
    """,
    "EMBEDDING": """
        0C dtype index_dtype              2C u32 table
        30 u16 entry_elements             32 u16 entry_bytes_lo
        34 u16 length                     38 u32 entries
        3C u16 entry_bytes_hi
    """,
    # Collectives. The 48 bytes of COLLECTIVE from 10 are laid out like a D4 (our own choice).
    "COLLECTIVE": """
        0C alu reduce_op                  0D dtype dtype
        0E u8 kind                        10 A8 src
        18 steps src_step                 20 nums src_num
        24 size src_size                  26 u16 group
        28 A8 dst                         30 steps dst_step
        38 nums dst_num                   3C size dst_size
    """,
    "COLLECTIVE_OLD": """
        0C alu reduce_op                  0D dtype dtype
        0E u8 kind                        0F u8 flags
        10 u32 src_var                    14 u32 dst_var
        18 u32 elements
    """,
    "SEND": """
        10 u64 tensor
        30 u64 base
        38 u32 elements
    """,
    "SB2SB": """
        0C dtype in_dtype                 0D dtype out_dtype
        10 T3D src                        20 u8 one
        21 u8 flags                       30 T3D dst
    """,
    "GID": """
        0C u8 one
        17 u8 dst_reg
    """,
    "RANK": """
        0C u8 group                       0E u8 channel
        10 u16 iteration                  12 u8 dst_reg
        14 u16 stream
    """,
    "COMPLETION": """
        0C u8 id
        10 u32 tensor
    """,
}
