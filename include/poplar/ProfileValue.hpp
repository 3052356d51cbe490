// A value of a report: a truth value, a number, text, a list or named values.
#ifndef poplar_ProfileValue_hpp
#define poplar_ProfileValue_hpp

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(default)

namespace poplar {

// What is not there, by name or by place, is a value without content: its sums are 0, its lists are empty.
// Asking a value for what it is not is a poplar_error. What the operators give is part of the value that they
// are asked of.
class ProfileValue {
 public:
  using Vector = std::vector<ProfileValue>;
  using Map = std::map<std::string, ProfileValue>;
  enum class Type { BOOL_, STRING, NUMBER, VECTOR, MAP, NONE };

  ProfileValue();
  ~ProfileValue();
  ProfileValue(const ProfileValue&);
  ProfileValue(ProfileValue&&) noexcept;
  ProfileValue& operator=(const ProfileValue&);
  ProfileValue& operator=(ProfileValue&&) noexcept;
  template <class T, class = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  ProfileValue(T value)
      : type_(std::is_same<T, bool>::value ? Type::BOOL_ : Type::NUMBER),
        isWhole_(std::is_integral<T>::value),
        whole_(static_cast<std::int64_t>(value)),
        number_(static_cast<double>(value)),
        text_(),
        vector_(),
        map_() {}
  ProfileValue(const char* text);
  ProfileValue(std::string text);
  ProfileValue(Vector values);
  ProfileValue(Map values);

  Type type() const { return type_; }
  const ProfileValue& operator[](const std::string& name) const;
  const ProfileValue& operator[](const char* name) const { return (*this)[std::string(name)]; }
  const ProfileValue& operator[](std::size_t place) const;
  const ProfileValue& operator[](int place) const { return (*this)[static_cast<std::size_t>(place)]; }
  const ProfileValue& getOrNull(const std::string& name) const { return (*this)[name]; }
  std::size_t size() const;  // of a list or of named values, else 0

  const std::string& asString() const;
  bool asBool() const;
  std::int64_t asInt() const;
  std::uint64_t asUint() const { return static_cast<std::uint64_t>(asInt()); }
  double asDouble() const;
  const Vector& asVector() const;
  const Map& asMap() const;
  std::vector<std::uint64_t> toUintVector() const;

  // Of the numbers of a list, and of the lists in a list.
  std::int64_t sumInt() const;
  std::uint64_t sumUint() const { return static_cast<std::uint64_t>(sumInt()); }
  double sumDouble() const;
  std::int64_t sum2DInt() const;
  std::uint64_t sum2DUint() const { return static_cast<std::uint64_t>(sum2DInt()); }

  friend bool operator==(const ProfileValue& a, const ProfileValue& b) { return a.equals(b); }
  friend bool operator!=(const ProfileValue& a, const ProfileValue& b) { return !a.equals(b); }

 private:
  friend void serializeToJSON(std::ostream& out, const ProfileValue& value, bool prettyPrint);
  bool equals(const ProfileValue& other) const;

  Type type_;
  bool isWhole_;
  std::int64_t whole_;
  double number_;
  std::string text_;
  std::shared_ptr<const Vector> vector_;
  std::shared_ptr<const Map> map_;
};

void serializeToJSON(std::ostream& out, const ProfileValue& value, bool prettyPrint = false);

}  // namespace poplar

#pragma GCC visibility pop

#endif
