// The resources of a lock, as a caller names them and as they are checked.
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

/// The list of resources that a Lock takes: one name or several. Converts from "a", a std::string, a
/// std::string_view, {"a", "b"} or a std::vector<std::string>. Two literals in inner braces, {{"a", "b"}}, do
/// not compile, because other types would take them as two pointers around one string.
class ResourceList {
    struct Name {
        template <class Text>
        requires std::convertible_to<const Text&, std::string_view> Name(const Text& text)
            : view(text) {}  // NOLINT(google-explicit-constructor)
        std::string_view view;
    };

public:
    // NOLINTBEGIN(google-explicit-constructor, bugprone-forwarding-reference-overload): conversions are
    // wanted, and the constraints exclude this class itself
    template <class Text>
    requires(std::convertible_to<Text, std::string> || std::convertible_to<Text, std::string_view>)
        ResourceList(Text&& name) {
        names_.emplace_back(std::forward<Text>(name));
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

    /// Returns the names, and leaves this list empty.
    std::vector<std::string> take() && noexcept { return std::move(names_); }

private:
    std::vector<std::string> names_{};
};

namespace detail {

inline constexpr std::size_t longest_resource = std::size_t{512} * 1024 * 1024;
inline constexpr std::size_t max_resources = 1000;

/// Returns the resources sorted and each once. Throws std::invalid_argument if the list is empty or has more
/// than max_resources entries, if a name is empty, longer than longest_resource, or the key of the marker of
/// a quarantine (key_names.hpp), or if two names collide.
REDLOCK_EXPORT std::vector<std::string> checked_resources(std::vector<std::string> resources);

}  // namespace detail
}  // namespace redlock
