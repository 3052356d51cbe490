#include "superstep/base/tensor.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "superstep/base/integers.h"

namespace superstep {
namespace {

constexpr std::size_t alignment = 64;

// Large blocks of zeros take up room as they are touched.
std::shared_ptr<std::byte> allocate_zeroed(std::size_t size) {
  void* whole = std::calloc(1, size + alignment);
  if (!whole)
    throw Error(ErrorCode::out_of_memory, "cannot allocate a tensor of " + std::to_string(size) + " bytes");
  const auto address = round_up<std::uintptr_t>(reinterpret_cast<std::uintptr_t>(whole), alignment);
  return {reinterpret_cast<std::byte*>(address), [whole](std::byte*) { std::free(whole); }};
}

template <class T>
double to_double(T value) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(value);
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
    return T(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, bool>)
    return value != 0.0;
  else
    return static_cast<T>(value);
}

}  // namespace

// Elements that lie in memory from the beginning.
struct Tensor::Memory : Storage {
  explicit Memory(std::shared_ptr<std::byte> memory) : owner(std::move(memory)) { made = owner.get(); }
  std::byte* make() override { return made; }

  std::shared_ptr<std::byte> owner;
};

// Elements that are made when they are first asked for.
struct Tensor::Recipe : Storage {
  Recipe(std::size_t count, Fill function) : byte_count(count), fill(std::move(function)) {}

  std::byte* make() override {
    const std::lock_guard lock(mutex);
    if (made) return made;
    owner = allocate_zeroed(byte_count);
    if (fill) fill(owner.get());
    made.store(owner.get(), std::memory_order_release);
    return made;
  }

  std::size_t byte_count;
  Fill fill;
  std::mutex mutex;
  std::shared_ptr<std::byte> owner;
};

Tensor::Tensor(ElementType type, Shape shape) : type_(type), shape_(std::move(shape)) {
  storage_ = std::make_shared<Memory>(allocate_zeroed(byte_count()));
}

Tensor Tensor::generated(ElementType type, Shape shape, Fill fill) {
  const auto bytes = static_cast<std::size_t>(shape.element_count()) * size_in_bytes(type);
  return {type, std::move(shape), std::make_shared<Recipe>(bytes, std::move(fill))};
}

Tensor Tensor::over(ElementType type, Shape shape, std::shared_ptr<std::byte> memory) {
  return {type, std::move(shape), std::make_shared<Memory>(std::move(memory))};
}

const Tensor::Recipe* Tensor::unmade() const {
  return storage_->made.load(std::memory_order_acquire) ? nullptr : static_cast<Recipe*>(storage_.get());
}

void Tensor::copy_to(std::byte* target) const {
  const Recipe* recipe = unmade();
  if (!recipe) {
    if (byte_count() > 0) std::memcpy(target, bytes(), byte_count());
  } else if (recipe->fill) {
    recipe->fill(target);
  } else {
    std::memset(target, 0, byte_count());
  }
}

bool Tensor::is_zeros_unmade() const {
  const Recipe* recipe = unmade();
  return recipe && !recipe->fill;
}

Tensor Tensor::full(ElementType type, Shape shape, double value) {
  Tensor tensor(type, std::move(shape));
  dispatch(type, [&]<class T>() { std::ranges::fill(tensor.as<T>(), from_double<T>(value)); });
  return tensor;
}

double Tensor::at(std::int64_t index) const {
  return dispatch(type_, [&]<class T>() { return to_double(as<T>()[static_cast<std::size_t>(index)]); });
}

void Tensor::set(std::int64_t index, double value) {
  dispatch(type_, [&]<class T>() { as<T>()[static_cast<std::size_t>(index)] = from_double<T>(value); });
}

Tensor Tensor::clone() const {
  Tensor copy(type_, shape_);
  copy_to(copy.bytes());
  return copy;
}

Tensor Tensor::reshaped(Shape shape) const {
  if (shape.element_count() != element_count())
    throw Error(ErrorCode::invalid_argument,
                "cannot reshape " + to_string(shape_) + " to " + to_string(shape));
  Tensor view = *this;
  view.shape_ = std::move(shape);
  return view;
}

Tensor Tensor::converted(ElementType type) const {
  if (type == type_) return clone();
  Tensor result(type, shape_);
  dispatch(type_, [&]<class From>() {
    dispatch(type, [&]<class To>() {
      const auto source = as<From>();
      auto target = result.as<To>();
      for (std::size_t i = 0; i < source.size(); ++i) {
        // Integers convert as integers: a 64-bit value does not survive a double.
        if constexpr (std::is_integral_v<From> && std::is_integral_v<To>)
          target[i] = static_cast<To>(source[i]);
        else
          target[i] = from_double<To>(to_double(source[i]));
      }
    });
  });
  return result;
}

void Tensor::require(ElementType type) const {
  if (type != type_)
    throw Error(ErrorCode::internal,
                std::string("a tensor of ") + name_of(type_) + " was read as " + name_of(type));
}

}  // namespace superstep
