// A unix socket that a client in the same process can connect to, and the server's ends of what has
// connected. Nothing here blocks.
#pragma once

#include "claim.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

namespace redlock::fuzz {

/// A directory of this process, removed when it ends well.
class Directory {
public:
    Directory() {
        auto pattern = (std::filesystem::temp_directory_path() / "redlock-fuzz-XXXXXX").string();
        claim(::mkdtemp(pattern.data()) != nullptr, "a directory can be made");
        path_ = pattern;
    }
    ~Directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    std::string operator/(const std::string& name) const { return (path_ / name).string(); }

    static const Directory& mine() {
        static const Directory directory;
        return directory;
    }

private:
    std::filesystem::path path_;
};

class Listener {
public:
    explicit Listener(const std::string& name) : path_(Directory::mine() / name) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        claim(path_.size() < sizeof address.sun_path, "a path that fits");
        std::memcpy(address.sun_path, path_.data(), path_.size());
        claim(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                  ::listen(socket_, 512) == 0,
              "a socket can be made");
    }
    ~Listener() { ::close(socket_); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    const std::string& path() const { return path_; }

    /// The next client; -1 if there is none.
    int accept() const { return ::accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); }

private:
    std::string path_;
    int socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
};

}  // namespace redlock::fuzz
