// Strong ids: an index that cannot be passed where an index of another kind is meant.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace superstep {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;  // no thing at all
  constexpr explicit Id(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}
  constexpr bool valid() const { return index_ != none; }
  constexpr std::size_t index() const { return index_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr std::uint32_t none = 0xffffffffu;
  std::uint32_t index_ = none;
};

}  // namespace superstep

template <class Tag>
struct std::hash<superstep::Id<Tag>> {
  std::size_t operator()(superstep::Id<Tag> id) const { return std::hash<std::size_t>()(id.index()); }
};
