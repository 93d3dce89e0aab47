// The names of what is locked: checked, sorted, each once.
#pragma once

#include <redlock/export.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock {

/// What a Lock takes: one name or several. Made implicitly of "a", a std::string, a std::string_view, {"a",
/// "b"} or a std::vector<std::string>. Literals in braces of their own, {{"a", "b"}}, are refused: elsewhere
/// they make one string of what lies between the two.
class ResourceList {
    struct Name {
        template <class Text>
        requires std::convertible_to<const Text&, std::string_view> Name(const Text& text)
            : view(text) {}  // NOLINT(google-explicit-constructor)
        std::string_view view;
    };

public:
    // NOLINTBEGIN(google-explicit-constructor, bugprone-forwarding-reference-overload): neither is one of the
    // class itself
    template <class Text>
    requires std::convertible_to<Text, std::string> ResourceList(Text&& name) {
        names_.push_back(std::forward<Text>(name));
    }

    template <class View>
    requires(std::convertible_to<View, std::string_view> && !std::convertible_to<View, std::string>)
        ResourceList(const View& name) {
        names_.emplace_back(std::string_view{name});
    }

    template <class Vector>
    requires std::same_as<std::remove_cvref_t<Vector>, std::vector<std::string>> ResourceList(Vector&& names)
        : names_(std::forward<Vector>(names)) {}
    // NOLINTEND(google-explicit-constructor, bugprone-forwarding-reference-overload)

    ResourceList(std::initializer_list<Name> names) {
        names_.reserve(names.size());
        for (const auto& name : names) names_.emplace_back(name.view);
    }

    ResourceList(std::initializer_list<std::initializer_list<const char*>>) = delete;

    std::vector<std::string> take() && noexcept { return std::move(names_); }

private:
    std::vector<std::string> names_{};
};

namespace detail {

inline constexpr std::size_t longest_resource = std::size_t{512} * 1024 * 1024;
inline constexpr std::size_t max_resources = 1000;

/// Sorted and without repetition. Throws std::invalid_argument for a list that cannot be locked.
REDLOCK_EXPORT std::vector<std::string> checked_resources(std::vector<std::string> resources);

}  // namespace detail
}  // namespace redlock
