# Names and types are those of the pure body.
from kclient._accel.reference import *
