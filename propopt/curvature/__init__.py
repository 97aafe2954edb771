"""The squared losses of a program as one quadratic form: its eigenbases, its Hessian.

``quadratic`` names the parts, ``eigenbasis`` diagonalizes them, ``hessian`` inverts.
"""
