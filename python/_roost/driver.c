/* driver.c - rules of roost/engine/driver.h, for drivers in Python. */
#include <roost/engine/driver.h>

#include "binding.h"

/* A str, or NULL for None; false with an exception. */
static bool open_text(struct binding *binding, PyObject *value, const char *what, const char **out)
{
    *out = value == Py_None ? NULL : binding_text(binding, value, what);
    return value == Py_None || *out;
}

PyObject *binding_choose_engine(PyObject *module, PyObject *args)
{
    struct binding *binding = PyModule_GetState(module);
    PyObject *asked, *from_env, *config;
    const char *asked_word, *env_word;
    if (!PyArg_ParseTuple(args, "OOO", &asked, &from_env, &config) ||
        !open_text(binding, asked, "engine", &asked_word) ||
        !open_text(binding, from_env, "ROOST_ENGINE", &env_word))
        return NULL;
    if (config != Py_None && !binding_want(config, binding->config, "config"))
        return NULL;
    return PyUnicode_FromString(
        roost_engine_choose(asked_word, env_word, config == Py_None ? NULL : config_value(config)));
}

PyObject *binding_settings(PyObject *module, PyObject *environ)
{
    PyObject *owner = NULL;
    const char **env = binding_environment(environ, "environ", &owner);
    if (!env)
        return NULL;
    struct roost_settings settings;
    struct roost_error error;
    enum roost_code code = roost_settings_read(env, &settings, &error);
    PyMem_Free((void *)env);
    Py_XDECREF(owner);
    if (code != ROOST_OK)
        return binding_raise(PyModule_GetState(module), &error, NULL, NULL);
    return Py_BuildValue("(iN)", (int)settings.port_base, PyBool_FromLong(!settings.has_no_cgroup));
}

/* The numbers of a sequence; NULL with an exception. Free with PyMem_Free. */
static int32_t *read_numbers(PyObject *sequence, Py_ssize_t *out_count)
{
    PyObject *items = PySequence_Tuple(sequence);
    *out_count = items ? PyTuple_Size(items) : 0;
    int32_t *numbers = items ? PyMem_Calloc((size_t)*out_count + 1, sizeof *numbers) : NULL;
    if (items && !numbers)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; numbers && i < *out_count; i++) {
        numbers[i] = (int32_t)PyLong_AsLong(PyTuple_GetItem(items, i));
        if (PyErr_Occurred()) {
            PyMem_Free(numbers);
            numbers = NULL;
        }
    }
    Py_XDECREF(items);
    return numbers;
}

PyObject *binding_ranks_text(PyObject *module, PyObject *ranks)
{
    Py_ssize_t count;
    int32_t *numbers = read_numbers(ranks, &count);
    (void)module;
    if (!numbers)
        return NULL;
    size_t size = roost_ranks_text(numbers, (size_t)count, NULL, 0) + 1;
    char *text = PyMem_Malloc(size);
    PyObject *made = NULL;
    if (text) {
        roost_ranks_text(numbers, (size_t)count, text, size);
        made = PyUnicode_FromString(text);
    } else {
        PyErr_NoMemory();
    }
    PyMem_Free(text);
    PyMem_Free(numbers);
    return made;
}

PyObject *binding_readiness(PyObject *module, PyObject *args)
{
    const char *group;
    int world_size, late_count;
    PyObject *named;
    struct roost_late late[ROOST_LATE_NAMED];
    (void)module;
    if (!PyArg_ParseTuple(args, "siiO!", &group, &world_size, &late_count, &PyList_Type, &named))
        return NULL;
    int expected = late_count < ROOST_LATE_NAMED ? late_count : ROOST_LATE_NAMED;
    if (PyList_Size(named) != expected) {
        PyErr_Format(PyExc_ValueError, "named must have %d ranks", expected);
        return NULL;
    }
    for (int i = 0; i < expected; i++) {
        int rank;
        if (!PyArg_ParseTuple(PyList_GetItem(named, i), "is", &rank, &late[i].note))
            return NULL;
        late[i].rank = rank;
    }
    size_t size = roost_readiness_text(group, world_size, late, late_count, NULL, 0) + 1;
    char *text = PyMem_Malloc(size);
    if (!text)
        return PyErr_NoMemory();
    roost_readiness_text(group, world_size, late, late_count, text, size);
    PyObject *made = PyUnicode_FromString(text);
    PyMem_Free(text);
    return made;
}

bool driver_add_words(PyObject *module)
{
    PyObject *names = PyList_New(0);
    for (const char *const *it = roost_engine_names(); *it; it++)
        binding_append(&names, PyUnicode_FromString(*it));
    PyObject *engines = names ? PyList_AsTuple(names) : NULL;
    bool is_good = engines && PyModule_AddObjectRef(module, "engines", engines) == 0 &&
                   PyModule_AddIntConstant(module, "LATE_NAMED", ROOST_LATE_NAMED) == 0;
    Py_XDECREF(names);
    Py_XDECREF(engines);
    return is_good;
}
