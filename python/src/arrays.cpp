#include "python/src/arrays.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>
#include <string_view>

namespace superstep::python {
namespace {

namespace nb = nanobind;

[[noreturn]] void refuse(const Port& port, std::string message, std::string hint) {
  throw Error(ErrorCode::invalid_argument, std::move(message), "'" + port.name + "'", std::move(hint));
}

std::string words(ElementType type, const Shape& shape) { return name_of(type) + to_string(shape); }

[[noreturn]] void refuse_type(const Port& port, ElementType given, const Shape& shape) {
  const std::string name = name_of(port.element);
  const std::string numpy = port.element == ElementType::boolean ? "bool"
                            : name[0] == 'f'                     ? "float" + name.substr(1)
                            : name[0] == 'i'                     ? "int" + name.substr(1)
                            : name[0] == 'u'                     ? "uint" + name.substr(1)
                                                                 : name;
  refuse(port, "is " + words(port.element, port.shape) + ", not " + words(given, shape),
         given == port.element
             ? "one sample more or less is another compiled model: load(..., batch=N), or map()"
             : "x.astype('" + numpy + "') makes a copy of this type");
}

void require(const Port& port, ElementType given, const Shape& shape) {
  if (given != port.element || shape != port.shape) refuse_type(port, given, shape);
}

// What a format of the buffer protocol says; nothing where it is no number of this machine's byte order.
std::optional<ElementType> type_of(const char* format, Py_ssize_t bytes) {
  std::string_view text = format ? format : "B";
  if (!text.empty() && (text[0] == '@' || text[0] == '=' || text[0] == '<')) text.remove_prefix(1);
  if (text.size() != 1) return {};
  const std::string_view wholes = "bhilq", naturals = "BHILQ", floats = "efd";
  const std::string size = std::to_string(8 * bytes);
  if (text == "?") return ElementType::boolean;
  if (wholes.contains(text[0])) return element_type_from_name("i" + size);
  if (naturals.contains(text[0])) return element_type_from_name("u" + size);
  if (floats.contains(text[0])) return element_type_from_name("f" + size);
  return {};
}

Shape shape_of(const Py_buffer& view) {
  return view.ndim == 0 ? Shape{} : Shape(std::vector<std::int64_t>(view.shape, view.shape + view.ndim));
}

bool is_aligned(const void* memory, ElementType type) {
  return reinterpret_cast<std::uintptr_t>(memory) % size_in_bytes(type) == 0;
}

Tensor over_memory(ElementType type, const Shape& shape, void* memory) {
  if (shape.element_count() == 0) return Tensor(type, shape);
  return Tensor::over(type, shape,
                      std::shared_ptr<std::byte>(std::shared_ptr<void>(), static_cast<std::byte*>(memory)));
}

std::optional<ElementType> type_of(nb::dlpack::dtype type) {
  using nb::dlpack::dtype_code;
  if (type.lanes != 1) return {};
  const std::string size = std::to_string(type.bits);
  switch (static_cast<dtype_code>(type.code)) {
    case dtype_code::Bool: return ElementType::boolean;
    case dtype_code::Int: return element_type_from_name("i" + size);
    case dtype_code::UInt: return element_type_from_name("u" + size);
    case dtype_code::Float: return element_type_from_name("f" + size);
    case dtype_code::Bfloat: return element_type_from_name("bf" + size);
    default: return {};
  }
}

using Foreign = nb::ndarray<nb::ro>;

bool is_row_major(const Foreign& array) {
  std::int64_t expected = 1;
  for (std::size_t axis = array.ndim(); axis-- > 0; expected *= static_cast<std::int64_t>(array.shape(axis)))
    if (array.shape(axis) > 1 && array.stride(axis) != expected) return false;
  return true;
}

// A row-major copy of elements with strides, in elements.
void gather(const Foreign& array, std::size_t bytes, std::size_t axis, const std::byte* from,
            std::byte*& to) {
  if (axis == array.ndim()) {
    std::memcpy(to, from, bytes);
    to += bytes;
    return;
  }
  const auto step = array.stride(axis) * static_cast<std::int64_t>(bytes);
  for (std::size_t i = 0; i < array.shape(axis); ++i)
    gather(array, bytes, axis + 1, from + static_cast<std::int64_t>(i) * step, to);
}

// The array of NumPy over a tensor of PyTorch: cheaper than an export by DLPack. None where there is no such
// array (a tensor of another device, with gradients, of bf16), and of other libraries, whose `numpy` may
// copy.
nb::object as_numpy(nb::handle object) {
  PyTypeObject* const type = Py_TYPE(object.ptr());
  const nb::object module =
      nb::getattr(nb::handle(reinterpret_cast<PyObject*>(type)), "__module__", nb::none());
  if (!nb::isinstance<nb::str>(module) || PyUnicode_CompareWithASCIIString(module.ptr(), "torch") != 0 ||
      !nb::hasattr(object, "numpy"))
    return {};
  PyObject* const array = PyObject_CallMethod(object.ptr(), "numpy", nullptr);
  if (!array) PyErr_Clear();
  return nb::steal(array);
}

[[noreturn]] void refuse_object(nb::handle object, const Port& port) {
  const std::string kind = nb::cast<std::string>(object.type().attr("__name__"));
  if (nb::cast<bool>(nb::bool_(nb::getattr(object, "requires_grad", nb::bool_(false)))))
    refuse(port, "is a tensor that gradients are asked of", "x.detach() is one without");
  const nb::object device = nb::getattr(object, "device", nb::none());
  if (nb::hasattr(object, "__dlpack__"))
    refuse(port,
           "is an array whose memory cannot be read here" +
               (device.is_none() ? std::string() : " (" + nb::cast<std::string>(nb::str(device)) + ")"),
           "x.cpu() of PyTorch, numpy.asarray(x) of others");
  refuse(port, "is " + kind + ", which is no array", "numpy.asarray(x, dtype=...) makes one");
}

}  // namespace

Given::Given(nb::handle array, const Port& port) {
  if (take_buffer(array, port)) return;
  const nb::object same = as_numpy(array);  // the view holds it
  if (same.is_valid() && take_buffer(same, port))
    foreign_ = true;
  else
    take_dlpack(array, port);
}

Given::~Given() {
  if (view_.obj) PyBuffer_Release(&view_);
}

Given::Given(Given&& other) noexcept
    : view_(other.view_),
      array_(std::move(other.array_)),
      tensor_(std::move(other.tensor_)),
      copied_(other.copied_),
      foreign_(other.foreign_) {
  other.view_.obj = nullptr;
}

bool Given::take_buffer(nb::handle array, const Port& port) {
  static PyObject* const numpys = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  foreign_ = reinterpret_cast<PyObject*>(Py_TYPE(array.ptr())) != numpys;
  if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    view_.obj = nullptr;
    return false;
  }
  try {
    const std::optional<ElementType> type = type_of(view_.format, view_.itemsize);
    if (!type)
      refuse(port, "has elements of kind '" + std::string(view_.format) + "'", "use a type of numbers");
    require(port, *type, shape_of(view_));
    if (PyBuffer_IsContiguous(&view_, 'C') && is_aligned(view_.buf, port.element)) {
      tensor_ = over_memory(port.element, port.shape, view_.buf);
      return true;
    }
    copied_ = true;
    tensor_ = Tensor(port.element, port.shape);
    if (PyBuffer_ToContiguous(tensor_.bytes(), &view_, view_.len, 'C') != 0) throw nb::python_error();
    return true;
  } catch (...) {
    PyBuffer_Release(&view_);
    throw;
  }
}

void Given::take_dlpack(nb::handle object, const Port& port) {
  Foreign array;
  if (!nb::hasattr(object, "__dlpack__") || !nb::try_cast(object, array) || !array.is_valid() ||
      array.device_type() != nb::device::cpu::value)
    refuse_object(object, port);
  const std::optional<ElementType> type = type_of(array.dtype());
  if (!type) refuse(port, "has elements of a kind that is no number", "use a type of numbers");
  std::vector<std::int64_t> extents;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis)
    extents.push_back(static_cast<std::int64_t>(array.shape(axis)));
  require(port, *type, Shape(extents));
  foreign_ = true;
  if (is_row_major(array) && is_aligned(array.data(), port.element)) {
    tensor_ = over_memory(port.element, port.shape, const_cast<void*>(array.data()));  // it is only read
    array_ = std::move(array);
    return;
  }
  copied_ = true;
  tensor_ = Tensor(port.element, port.shape);
  std::byte* to = tensor_.bytes();
  gather(array, size_in_bytes(port.element), 0, static_cast<const std::byte*>(array.data()), to);
}

Maker::Maker(const Port& port) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  empty_ = numpy.attr("empty");
  nb::list extents;
  for (const std::int64_t extent : port.shape) extents.append(extent);
  shape_ = nb::tuple(extents);
  type_ = nb::module_::import_("superstep.arrays").attr("numpy_type")(name_of(port.element));
}

Tensor Maker::over(nb::handle array, const Port& port) {
  Py_buffer view{};
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_STRIDED | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    refuse(port, "cannot be written to", "give a writable array of NumPy");
  }
  const std::optional<ElementType> type = type_of(view.format, view.itemsize);
  const bool plain = PyBuffer_IsContiguous(&view, 'C') && is_aligned(view.buf, port.element);
  const Shape shape = shape_of(view);
  void* memory = view.buf;
  PyBuffer_Release(&view);  // who gives an array for results keeps it
  const bool bits = port.element == ElementType::bf16 && type == ElementType::u16;
  if (!bits) require(port, type.value_or(ElementType::boolean), shape);
  if (!plain)
    refuse(port, "is not row-major", "results are written where they lie: numpy.ascontiguousarray(out)");
  return over_memory(port.element, port.shape, memory);
}

nb::object array_of(const Tensor& tensor, const std::string& name) {
  const Tensor given = tensor.type() == ElementType::bf16 ? tensor.converted(ElementType::f32) : tensor;
  const Port port{name, given.type(), given.shape()};
  nb::object array = Maker(port).make();
  Tensor over = Maker::over(array, port);
  given.copy_to(over.bytes());
  return array;
}

nb::tuple described(const Port& port) {
  nb::list extents;
  for (const std::int64_t extent : port.shape) extents.append(extent);
  return nb::make_tuple(port.name, std::string(name_of(port.element)), nb::tuple(extents));
}

nb::list described(const std::vector<Port>& ports) {
  nb::list list;
  for (const Port& port : ports) list.append(described(port));
  return list;
}

}  // namespace superstep::python
