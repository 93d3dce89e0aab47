// A vector that allocates no memory for a few elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

namespace redlock::detail {

/// A vector whose size is set by the constructor. Up to `inside` elements lie in the object itself, where
/// only `size()` of them exist. More lie on the heap.
template <class T, std::size_t inside>
class SmallVector {
public:
    SmallVector() noexcept {}  // NOLINT(modernize-use-equals-default): `= default` deletes it (the union)
    explicit SmallVector(std::size_t size)
        : heap_(size > inside ? std::make_unique<Elements>(size) : nullptr), size_(size) {
        if (!heap_) std::uninitialized_value_construct_n(data(), size_);
    }
    SmallVector(const SmallVector& other) : SmallVector(other.size_) {
        std::copy_n(other.data(), size_, data());
    }
    /// The vector that was moved from is empty.
    SmallVector(SmallVector&& other) noexcept { take(other); }
    SmallVector& operator=(const SmallVector& other) {
        *this = SmallVector{other};
        return *this;
    }
    SmallVector& operator=(SmallVector&& other) noexcept {
        if (this == &other) return *this;
        destroy_inside();
        take(other);
        return *this;
    }
    ~SmallVector() { destroy_inside(); }

    std::size_t size() const noexcept { return size_; }
    T* data() noexcept { return heap_ ? heap_.get() : elements_.data(); }
    const T* data() const noexcept { return heap_ ? heap_.get() : elements_.data(); }
    T* begin() noexcept { return data(); }
    T* end() noexcept { return data() + size_; }
    const T* begin() const noexcept { return data(); }
    const T* end() const noexcept { return data() + size_; }
    T& operator[](std::size_t i) noexcept { return data()[i]; }
    const T& operator[](std::size_t i) const noexcept { return data()[i]; }

private:
    using Elements = T[];  // NOLINT(modernize-avoid-c-arrays): only the constructor knows the size

    void destroy_inside() noexcept {
        if (!heap_) std::destroy_n(elements_.data(), size_);
    }
    /// Moves the elements of the other vector here. Requires that this one has none inside.
    void take(SmallVector& other) noexcept {
        heap_ = std::move(other.heap_);
        if (!heap_) {
            std::uninitialized_move_n(other.elements_.data(), other.size_, elements_.data());
            other.destroy_inside();
        }
        size_ = std::exchange(other.size_, 0);
    }

    std::unique_ptr<Elements> heap_{};
    std::size_t size_ = 0;
    union {
        std::array<T, inside> elements_;
    };
};

}  // namespace redlock::detail
