// The command-line tool `redlock`: reads the subcommand and executes it.
#include "arguments/command_line.hpp"
#include "process/exit_status.hpp"
#include "process/secrets.hpp"
#include "subcommands.hpp"
#include "text/words.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::tool {
namespace {

/// Replaces the library's names of options by those of the command line, for example LockOptions::max_hold by
/// --max-hold. An error of the library otherwise has names that the user does not know. It begins with the
/// name of the library, which can also be the end of a path.
std::string in_words_of_the_shell(std::string text) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 2> names{
        {{"Semaphore: name", "resource"}, {": tls.", ": "}}};
    constexpr std::string_view library = "redlock: ";
    const auto begin = text.find(library);
    if (begin == 0 || (begin != text.npos && text[begin - 1] == ' ')) text.erase(begin, library.size());
    for (const auto& [theirs, ours] : names)
        if (const auto at = text.find(theirs); at != text.npos) text.replace(at, theirs.size(), ours);
    for (const std::string_view prefix : {"LockOptions::", "NodesOptions::"})
        for (auto at = text.find(prefix); at != text.npos; at = text.find(prefix, at)) {
            text.replace(at, prefix.size(), "--");
            const auto end = std::min(text.find_first_of(" ,;)", at), text.size());
            std::replace_if(
                &text[at], &text[end], [](char it) { return it == '_' || it == '.'; }, '-');
        }
    return text;
}

int fail(const std::string& problem, int status) {
    say(in_words_of_the_shell(without_secrets(problem)));
    return status;
}

int carry_out(std::vector<std::string> words) {
    CommandLine line;
    add_run(line);
    add_lease_subcommands(line);
    add_status_and_who(line);
    add_doctor(line);
    add_bench(line);
    std::function<int()> chosen;
    try {
        chosen = line.parse(std::move(words));
    } catch (const std::invalid_argument& error) {
        (void)fail(error.what(), exit_status::usage);
        return fail("try redlock --help or redlock COMMAND --help", exit_status::usage);
    }
    const int status = chosen ? chosen() : 0;
    return std::cout.flush() ? status : fail("stdout takes nothing", exit_status::internal);
}

/// Opens the standard streams that were closed when the process was started. Otherwise a file or a socket
/// that is opened later would take their number. open() uses the lowest free number, which is that of the
/// stream. Writing to a stdout that was closed must fail instead of losing the output, so it is opened for
/// reading.
void reserve_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(stream, F_GETFD) < 0)  // it was closed
            (void)::open("/dev/null", (stream == STDOUT_FILENO ? O_RDONLY : O_RDWR) | O_CLOEXEC);
}

}  // namespace
}  // namespace redlock::tool

int main(int argc, char** argv) {
    namespace tool = redlock::tool;
    try {
        std::vector<std::string> words{argv + std::min(argc, 1), argv + argc};
        tool::erase_secrets(argc, argv);
#if defined(M_ARENA_MAX)  // of glibc
        // All threads share one heap. To create a heap for each thread takes longer than these threads ever
        // wait for each other.
        ::mallopt(M_ARENA_MAX, 1);  // NOLINT(concurrency-mt-unsafe): there is no other thread yet
#endif
        tool::reserve_standard_streams();
        return tool::carry_out(std::move(words));
    } catch (const std::invalid_argument& error) {
        return tool::fail(error.what(), tool::exit_status::usage);
    } catch (const std::exception& error) {
        return tool::fail(error.what(), tool::exit_status::internal);
    }
}
