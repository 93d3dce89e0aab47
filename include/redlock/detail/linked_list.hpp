// A list that needs no memory.
#pragma once

#include <redlock/detail/not_copied.hpp>

namespace redlock::detail {

template <class T, class Tag>
class LinkedList;

/// A base class of T, with the links to the neighbours of the object in a LinkedList<T, Tag>. The destructor
/// removes the object from its list.
template <class T, class Tag = T>
class Linked : NotCopied {
protected:
    ~Linked() { unlink(); }

private:
    friend class LinkedList<T, Tag>;

    bool is_linked() const noexcept { return next_ != this; }
    void unlink() noexcept {
        next_->previous_ = previous_;
        previous_->next_ = next_;
        previous_ = next_ = this;
    }

    Linked* previous_ = this;
    Linked* next_ = this;
};

/// A list of objects that it does not own. An object is in at most one list with the same Tag. A list cannot
/// be copied or moved, because its ends cannot.
template <class T, class Tag = T>
class LinkedList {
public:
    ~LinkedList() {
        while (take()) continue;
    }

    bool empty() const noexcept { return !ends_.is_linked(); }
    /// These functions return null if there is no such object.
    T* first() const noexcept { return object(ends_.next_); }
    T* last() const noexcept { return object(ends_.previous_); }
    T* before(const T& it) const noexcept { return object(link(it).previous_); }
    T* after(const T& it) const noexcept { return object(link(it).next_); }

    /// Returns true if the object is in any list with this Tag.
    static bool has(const T& it) noexcept { return link(it).is_linked(); }
    /// Removes the object from its list, if it is in one.
    static void remove(T& it) noexcept { link(it).unlink(); }
    /// Adds the object at the end. If it is in a list, removes it there.
    void add(T& it) noexcept {
        remove(it);
        insert(link(it), link(it));
    }
    /// Removes the first object, and returns it, or null.
    T* take() noexcept {
        auto* const it = first();
        if (it) remove(*it);
        return it;
    }
    /// Moves all objects of the other list to the end of this one.
    void add_all(LinkedList& other) noexcept {
        if (other.empty()) return;
        auto& from = *other.ends_.next_;
        auto& to = *other.ends_.previous_;
        other.ends_.next_ = other.ends_.previous_ = &other.ends_;
        insert(from, to);
    }

private:
    using Link = Linked<T, Tag>;
    struct Ends : Link {};

    static Link& link(T& it) noexcept { return it; }
    static const Link& link(const T& it) noexcept { return it; }
    T* object(Link* it) const noexcept { return it == &ends_ ? nullptr : static_cast<T*>(it); }
    /// Inserts a chain of links at the end.
    void insert(Link& from, Link& to) noexcept {
        from.previous_ = ends_.previous_;
        to.next_ = &ends_;
        ends_.previous_->next_ = &from;
        ends_.previous_ = &to;
    }

    Ends ends_{};  // the next one is the first object, and the previous one the last
};

}  // namespace redlock::detail
