# Part of batch.pyx: what goes into records, from objects and from columns.

cdef struct Content:
    const void* at
    Py_ssize_t size  # -1 for None


cdef inline uint8_t* put_content(uint8_t* to, Content content) noexcept nogil:
    to += put_varint(to, content.size)
    if content.size > 0:
        memcpy(to, content.at, <size_t>content.size)
        to += content.size
    return to


cdef inline int64_t content_size(Content content) noexcept nogil:
    return varint_size(content.size) + (content.size if content.size > 0 else 0)


cdef inline bint is_content(PyObject* item) noexcept:
    return <object>item is None or PyBytes_Check(<object>item)


cdef inline Content content_of(object given) noexcept:
    """Of bytes or None."""
    cdef Content content
    if given is None:
        content.at = NULL
        content.size = -1
    else:
        content.at = PyBytes_AS_STRING(given)
        content.size = PyBytes_GET_SIZE(given)
    return content


cdef bytes encoded_headers(object headers):
    """The headers as they stand in a record, with their number in front."""
    cdef list pairs = []
    cdef uint8_t* to
    cdef int64_t size
    unencodable = None
    for header in headers:
        if type(header) is not tuple or len(header) != 2:
            check_headers((header,))
        name, value = header
        if not isinstance(name, str) or not (value is None or PyBytes_Check(value)):
            check_headers(((name, value),))
        try:
            pairs.append((PyUnicode_AsUTF8String(name), value))
        except UnicodeEncodeError as error:
            unencodable = unencodable or error  # wrong types behind it are told first
    if unencodable is not None:
        raise unencodable
    size = varint_size(len(pairs))
    for name, value in pairs:
        size += content_size(content_of(name)) + content_size(content_of(value))
    if size > INT32_LARGEST:
        raise too_large()
    encoded = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
    to = <uint8_t*>PyBytes_AS_STRING(encoded)
    to += put_varint(to, len(pairs))
    for name, value in pairs:
        to = put_content(put_content(to, content_of(name)), content_of(value))
    return encoded


cdef enum:
    MOST_HEADERS = 16  # of a record, to be written without an object for them; others are encoded first


cdef struct HeaderList:
    int64_t size  # of all that ends a record, the number of headers in front
    Py_ssize_t count
    Content contents[2 * MOST_HEADERS]  # name and value of each
    Content encoded  # of all together, if they are


cdef inline void no_headers(HeaderList* headers) noexcept nogil:
    headers.size = 1
    headers.count = 0
    headers.encoded.at = NULL


cdef bytes encode_into(HeaderList* headers, object given):
    """Encode the headers; returns the bytes that the list points into, which have to stay."""
    cdef bytes encoded = encoded_headers(given)
    headers.encoded = content_of(encoded)
    headers.size = headers.encoded.size
    return encoded


cdef bint headers_of(object given, HeaderList* headers):
    """The contents of what is tuples of str and bytes or None; False for anything else, and for too many.

    They point into the strings, which keep their UTF-8, and have to stay. No Python code runs.
    """
    cdef PyObject** items
    cdef PyObject* name
    cdef PyObject* value
    cdef Py_ssize_t i
    cdef Content* content
    if not (PyTuple_CheckExact(given) or PyList_CheckExact(given)):
        return False
    headers.encoded.at = NULL
    headers.count = PySequence_Fast_GET_SIZE(given)
    if headers.count > MOST_HEADERS:
        return False
    items = PySequence_Fast_ITEMS(given)
    headers.size = varint_size(headers.count)
    for i in range(headers.count):
        if not PyTuple_CheckExact(<object>items[i]) or PyTuple_GET_SIZE(<object>items[i]) != 2:
            return False
        name = PyTuple_GET_ITEM(<object>items[i], 0)
        value = PyTuple_GET_ITEM(<object>items[i], 1)
        if not PyUnicode_CheckExact(<object>name) or not (<object>value is None or PyBytes_CheckExact(<object>value)):
            return False
        content = &headers.contents[2 * i]
        content.at = PyUnicode_AsUTF8AndSize(<object>name, &content.size)
        if content.at == NULL:
            PyErr_Clear()  # it cannot be encoded
            return False
        content[1] = content_of(<object>value)
        headers.size += content_size(content[0]) + content_size(content[1])
    return headers.size <= INT32_LARGEST


cdef struct Columnar:
    const char* offsets
    const char* data
    const uint8_t* bits
    Py_ssize_t first_bit
    int64_t data_size
    bint given, wide


cdef inline bint column_content(const Columnar* column, Py_ssize_t row, Content* content) noexcept nogil:
    """Read what is in `row` of the column; return False if its offsets lie outside of the data."""
    cdef int64_t wide[2]
    cdef int32_t narrow[2]
    cdef Py_ssize_t bit = column.first_bit + row
    content.at = NULL
    content.size = -1
    if not column.given or (column.bits != NULL and not column.bits[bit >> 3] >> (bit & 7) & 1):
        return True
    # Copied, because they may lie at any address, and because what is checked must be what is used: others may write
    # to the buffer.
    if column.wide:
        memcpy(wide, column.offsets + 8 * row, 16)
    else:
        memcpy(narrow, column.offsets + 4 * row, 8)
        wide[0] = narrow[0]
        wide[1] = narrow[1]
    if not 0 <= wide[0] <= wide[1] <= column.data_size:
        return False
    content.at = column.data + wide[0]
    content.size = <Py_ssize_t>(wide[1] - wide[0])
    return True


cdef Columnar columnar(object column):
    """Return the buffers of a checked column, which has to stay."""
    cdef Columnar found
    cdef Py_buffer* offsets
    found.given = column is not None
    found.offsets = found.data = NULL
    found.bits = NULL
    found.first_bit = found.data_size = 0
    found.wide = False
    if found.given:
        offsets = PyMemoryView_GET_BUFFER(column[0])
        found.offsets = <const char*>offsets.buf
        found.wide = offsets.itemsize == 8
        found.data = <const char*>PyMemoryView_GET_BUFFER(column[1]).buf
        found.data_size = PyMemoryView_GET_BUFFER(column[1]).len
        if column[2] is not None:
            found.bits = <const uint8_t*>PyMemoryView_GET_BUFFER(column[2]).buf
            found.first_bit = column[3]
    return found
