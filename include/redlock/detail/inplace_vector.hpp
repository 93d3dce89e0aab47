// A small vector without an allocation.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

namespace redlock::detail {

/// A vector whose elements lie in the object itself, like std::inplace_vector of C++26. Its size is set by
/// the constructor. Only `size()` elements exist, so the rest of the memory is not touched.
template <class T, std::size_t capacity>
class InplaceVector {
public:
    InplaceVector() noexcept {}  // NOLINT(modernize-use-equals-default): `= default` deletes it (the union)
    explicit InplaceVector(std::size_t size) noexcept : size_(size) {
        std::uninitialized_value_construct_n(data(), size_);
    }
    InplaceVector(const InplaceVector& other) {
        std::uninitialized_copy_n(other.data(), other.size_, data());
        size_ = other.size_;
    }
    /// The vector that was moved from is empty.
    InplaceVector(InplaceVector&& other) noexcept { take(other); }
    InplaceVector& operator=(const InplaceVector& other) { return *this = InplaceVector{other}; }
    InplaceVector& operator=(InplaceVector&& other) noexcept {
        if (this == &other) return *this;
        std::destroy_n(data(), size_);
        take(other);
        return *this;
    }
    ~InplaceVector() { std::destroy_n(data(), size_); }

    std::size_t size() const noexcept { return size_; }
    T* data() noexcept { return elements_.data(); }
    const T* data() const noexcept { return elements_.data(); }
    T* begin() noexcept { return data(); }
    T* end() noexcept { return data() + size_; }
    const T* begin() const noexcept { return data(); }
    const T* end() const noexcept { return data() + size_; }
    T& operator[](std::size_t i) noexcept { return elements_[i]; }
    const T& operator[](std::size_t i) const noexcept { return elements_[i]; }

private:
    /// Moves the elements of the other vector here. Requires that this one has none.
    void take(InplaceVector& other) noexcept {
        size_ = std::exchange(other.size_, 0);
        std::uninitialized_move_n(other.data(), size_, data());
        std::destroy_n(other.data(), size_);
    }

    std::size_t size_ = 0;
    union {
        std::array<T, capacity> elements_;
    };
};

}  // namespace redlock::detail
