/* Filling instances of slotted classes without their constructor; which classes allow it is said by
   reference/fast_construction.py. */
#ifndef KCLIENT_SLOTS_H
#define KCLIENT_SLOTS_H

#include "Python.h"
#include <structmember.h>

/* Where instances of `type` have the slot that `descriptor` stands for; -1 if it is not a plain slot of theirs. */
static CYTHON_INLINE Py_ssize_t kclient_slot(PyObject *type, PyObject *descriptor) {
#if CYTHON_COMPILING_IN_CPYTHON
    PyMemberDef *member;
    if (!PyType_Check(type) || Py_TYPE(descriptor) != &PyMemberDescr_Type) return -1;
    member = ((PyMemberDescrObject *)descriptor)->d_member;
    if (member->type != T_OBJECT_EX || member->flags
        || !PyType_IsSubtype((PyTypeObject *)type, PyDescr_TYPE(descriptor))
        || ((PyTypeObject *)type)->tp_itemsize || ((PyTypeObject *)type)->tp_alloc != PyType_GenericAlloc
        || member->offset < (Py_ssize_t)sizeof(PyObject)
        || member->offset + (Py_ssize_t)sizeof(PyObject *) > ((PyTypeObject *)type)->tp_basicsize) return -1;
    return member->offset;
#else
    (void)type; (void)descriptor;
    return -1;
#endif
}

/* An instance with empty slots that the collector does not know yet. */
static CYTHON_INLINE PyObject *kclient_bare(PyObject *type) {
    PyObject *made = PyType_GenericAlloc((PyTypeObject *)type, 0);
    if (made != NULL && PyType_IS_GC((PyTypeObject *)type)) PyObject_GC_UnTrack(made);
    return made;
}

static CYTHON_INLINE void kclient_fill(PyObject *record, Py_ssize_t slot, PyObject *value) {
    Py_INCREF(value);
    *(PyObject **)((char *)record + slot) = value;
}

static CYTHON_INLINE void kclient_watch(PyObject *record) {
    if (PyObject_IS_GC(record)) PyObject_GC_Track(record);
}

static CYTHON_INLINE void kclient_unwatch(PyObject *tuple) { PyObject_GC_UnTrack(tuple); }

#endif
