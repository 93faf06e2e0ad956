"""Bundles: the table of opcodes and fields, the encoder and decoder by it, and what is legal.

`tables` says how records hold their fields; `codes` maps words to wire codes; `values` converts
addresses and immediates; `bundle` encodes and decodes; `legal` is the encoder's rules L1 to L32.
"""
