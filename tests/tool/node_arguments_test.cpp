// The addresses of the nodes, from a file and from the environment.
#include "tool/arguments/node_arguments.hpp"

#include "support/temporary_directory.hpp"

#include <redlock/detail/not_copied.hpp>

#include <gmock/gmock.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::tool::node_arguments_test {
namespace {

/// Returns the nodes of a command with these options.
std::vector<Endpoint> endpoints(std::vector<std::string> options) {
    NodeArguments arguments;
    CLI::App app;
    arguments.add_to(app);
    std::ranges::reverse(options);  // CLI11 expects this order
    try {
        app.parse(std::move(options));
    } catch (const CLI::ParseError& error) {
        throw std::invalid_argument{error.what()};
    }
    return arguments.endpoints();
}

/// Returns the message about options that name no nodes.
std::string error_of(const std::vector<std::string>& options) {
    try {
        (void)endpoints(options);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "no error";
}

/// Gives an environment variable this value, for as long as the object exists. Before and after, there is
/// no such variable.
class Variable : detail::NotCopied {
public:
    Variable(const char* name, const std::string& value) : name_(name) {
        ::setenv(name_, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
    }
    ~Variable() { ::unsetenv(name_); }  // NOLINT(concurrency-mt-unsafe)

private:
    const char* const name_;
};

/// A file of nodes that an option names.
struct NodesFile : testing::Test {
    void write(const std::string& text) const { std::ofstream{path} << text; }
    std::vector<Endpoint> nodes() const { return endpoints({"--nodes-file", path}); }
    std::string error() const { return error_of({"--nodes-file", path}); }

    const support::TemporaryDirectory directory{};
    const std::string path = directory / "nodes";
};

TEST_F(NodesFile, HasNoCommentInsideOfAnAddress) {
    write("redis://127.0.0.1:1 # the first\n# redis://127.0.0.1:2\nredis://127.0.0.1:3#4\n");
    EXPECT_THAT(error(), testing::StartsWith(path + ":3: "));
    EXPECT_THAT(error(), testing::HasSubstr("has a fragment ('#')"));
}

TEST_F(NodesFile, MayHaveCommentsAndBlanksAndPrecedesTheVariable) {
    write("# both\n\n  127.0.0.1:1  \n127.0.0.1:2\n");
    const Variable variable{nodes_variable, "nonsense"};
    const auto nodes = endpoints({"--nodes-file", path, "--node", "127.0.0.1:3"});
    ASSERT_EQ(nodes.size(), 3U);
    EXPECT_EQ(nodes[0].port, 3) << "the options come first";
    EXPECT_EQ(nodes[1].port, 1);
    EXPECT_EQ(nodes[2].port, 2);
}

/// Returns the message for a user for whom permissions hold, which they do not for root. Returns nothing if
/// the process cannot be such a user.
std::optional<std::string> error_without_privileges() {
    constexpr uid_t nobody = 65'534;
    const uid_t before = ::geteuid();
    if (before == 0 && ::seteuid(nobody) != 0) return std::nullopt;
    auto error = error_of({});
    EXPECT_EQ(::seteuid(before), 0);
    return error;
}

/// A home directory, in which the user may have a file of nodes. The host's file must not be read instead of
/// it.
class UsersNodesFile : public testing::Test {
protected:
    UsersNodesFile() {
        std::filesystem::create_directories(file.parent_path());
        std::filesystem::permissions(home.path(), std::filesystem::perms{0755});
        // NOLINTBEGIN(concurrency-mt-unsafe): one thread
        ::unsetenv(nodes_variable);
        ::unsetenv("XDG_CONFIG_HOME");
        ::setenv("HOME", home.path().c_str(), 1);
    }
    ~UsersNodesFile() override {
        ::setenv("HOME", home_before.c_str(), 1);
        // NOLINTEND(concurrency-mt-unsafe)
    }

    static void write(const std::filesystem::path& path) { std::ofstream{path} << "127.0.0.1:1\n"; }

    const std::string home_before = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
    const support::TemporaryDirectory home{};
    const std::filesystem::path file = home / ".config/redlock/nodes";
};

// An empty list of nodes in the environment counts as none.
TEST_F(UsersNodesFile, IsReadIfItIsThere) {
    write(file);
    EXPECT_EQ(endpoints({}).front().port, 1);
    const Variable no_nodes{nodes_variable, ""};
    const Variable config{"XDG_CONFIG_HOME", home / ".config"};
    ::setenv("HOME", "/none", 1);  // NOLINT(concurrency-mt-unsafe): one thread
    EXPECT_EQ(endpoints({}).front().port, 1);
}

TEST_F(UsersNodesFile, IsNamedByAnErrorInOneOfItsLines) {
    std::ofstream{file} << "# none\nhost:port\n";
    EXPECT_THAT(error_of({}), testing::StartsWith(file.string() + ":2: redlock: node address: port"));
}

// chmod 0 ~/.config/redlock: nobody knows whether the file is there.
TEST_F(UsersNodesFile, MustNotBeInADirectoryThatCannotBeSearched) {
    for (const auto& directory : {file.parent_path(), file.parent_path().parent_path()}) {
        std::filesystem::permissions(directory, std::filesystem::perms::none);
        const auto error = error_without_privileges();
        std::filesystem::permissions(directory, std::filesystem::perms{0755});
        if (!error) GTEST_SKIP() << "this root cannot become another user";
        EXPECT_EQ(*error, file.string() + ": cannot be read: Permission denied") << directory;
    }
}

TEST_F(UsersNodesFile, MustBeReadable) {
    write(file);
    std::filesystem::permissions(file, std::filesystem::perms::none);
    const auto error = error_without_privileges();
    if (!error) GTEST_SKIP() << "this root cannot become another user";
    EXPECT_EQ(*error, file.string() + ": cannot be read: Permission denied");
}

// A link to what is not mounted now. The name is there, so the user has said which nodes to take.
TEST_F(UsersNodesFile, MustNotLeadNowhere) {
    std::filesystem::create_symlink(home / "not-mounted/nodes", file);
    EXPECT_EQ(error_of({}), file.string() + ": cannot be read: No such file or directory");
}

TEST_F(UsersNodesFile, MustNotBeALoopOfLinks) {
    std::filesystem::create_symlink("nodes", file);
    EXPECT_EQ(error_of({}), file.string() + ": cannot be read: Too many levels of symbolic links");
    std::filesystem::remove_all(file.parent_path());
    std::filesystem::create_symlink("redlock", file.parent_path());
    EXPECT_EQ(error_of({}), file.string() + ": cannot be read: Too many levels of symbolic links");
}

TEST_F(UsersNodesFile, MustNotHaveANameThatIsTooLong) {
    const std::string config = "/" + std::string(300, 'x');
    const Variable variable{"XDG_CONFIG_HOME", config};
    EXPECT_EQ(error_of({}), config + "/redlock/nodes: cannot be read: File name too long");
}

TEST_F(UsersNodesFile, MustBeAFile) {
    std::filesystem::create_directory(file);
    EXPECT_EQ(error_of({}), file.string() + ": cannot be read: Is a directory");
}

// A user with XDG_CONFIG_HOME keeps no configuration in ~/.config.
TEST_F(UsersNodesFile, IsNotReadFromTheHomeDirectoryIfTheConfigurationIsElsewhere) {
    write(file);
    const Variable config{"XDG_CONFIG_HOME", home / "elsewhere"};
    if (std::filesystem::exists("/etc/redlock/nodes")) GTEST_SKIP() << "/etc/redlock/nodes is there";
    EXPECT_THAT(error_of({}), testing::StartsWith("no nodes: "));
}

// As ssh with a key: what everybody may read is no secret.
TEST_F(UsersNodesFile, MustNotShowAPasswordToEverybody) {
    for (const auto* const address :
         {"redis://:secret@127.0.0.1:1", "redis+sentinel://127.0.0.1:1/orders?sentinel_password=secret"}) {
        std::ofstream{file} << "127.0.0.1:2\n" << address << " # one of them\n";
        std::filesystem::permissions(file, std::filesystem::perms{0644});
        EXPECT_EQ(
            error_of({}),
            file.string() + ": has a password, and everybody may read it: chmod o-r " + file.string() +
                ", or give the secret the mode 0400 (`mode` in Docker, `defaultMode` in Kubernetes), or "
                "use REDLOCK_NODES");
        std::filesystem::permissions(file, std::filesystem::perms{0640});
        EXPECT_EQ(error_of({}), "no error");
    }
}

// Whoever may write it chooses the nodes, and so who holds the lock. The group is the user's own on many
// systems.
TEST_F(UsersNodesFile, MustNotBeWritableByEverybody) {
    write(file);
    std::filesystem::permissions(file, std::filesystem::perms{0646});
    EXPECT_EQ(error_of({}), file.string() + ": everybody may write it: chmod o-w " + file.string() +
                                ", or use REDLOCK_NODES");
    std::filesystem::permissions(file, std::filesystem::perms{0664});
    EXPECT_EQ(error_of({}), "no error");
}

// ENOENT and ENOTDIR.
TEST_F(UsersNodesFile, MayBeMissing) {
    if (std::filesystem::exists("/etc/redlock/nodes")) GTEST_SKIP() << "/etc/redlock/nodes is there";
    EXPECT_THAT(error_of({}), testing::StartsWith("no nodes: "));
    std::filesystem::remove_all(file.parent_path());
    EXPECT_THAT(error_of({}), testing::StartsWith("no nodes: "));
    write(file.parent_path());
    EXPECT_THAT(error_of({}), testing::StartsWith("no nodes: "));
}

TEST_F(NodesFile, MayHaveAMebibyteAndNoMore) {
    const std::string address = "127.0.0.1:1\n";
    const std::string comment(std::size_t{1024} * 1024 - address.size(), '#');
    write(address + comment);
    EXPECT_EQ(nodes().size(), 1U);
    write(address + comment + '#');
    EXPECT_EQ(error(), path + ": has more than 1 MiB");
}

TEST_F(NodesFile, MustNameANode) {
    for (const auto* const text : {"", "\n \n", "# redis://127.0.0.1:2\n", "\xef\xbb\xbf"}) {
        write(text);
        EXPECT_EQ(error(), "--nodes-file: " + path + ": names no node") << text;
    }
}

// As in --nodes-file "$NODES" without this variable. Other nodes than those of the other clients would be
// asked.
TEST_F(NodesFile, MustNotHaveAnEmptyName) {
    const Variable variable{nodes_variable, "127.0.0.1:1"};
    EXPECT_EQ(error_of({"--nodes-file", ""}), "--nodes-file: \"\" names no file");
    EXPECT_EQ(error_of({"--node", "127.0.0.1:2", "--nodes-file", ""}), "--nodes-file: \"\" names no file");
}

// Some editors begin every file with the bytes of U+FEFF, and end each line with two characters.
TEST_F(NodesFile, MayBeWrittenByAnEditorOfWindows) {
    for (const auto* const text :
         {"redis://127.0.0.1:1\n", "# the first\r\n127.0.0.1:1\r\n", "\n127.0.0.1:1"}) {
        write(std::string{"\xef\xbb\xbf"} + text);
        ASSERT_EQ(nodes().size(), 1U) << text;
        EXPECT_EQ(nodes()[0].port, 1);
        EXPECT_EQ(nodes()[0].host, "127.0.0.1");
    }
}

/// Returns the nodes of a command if REDLOCK_NODES is this text.
std::vector<Endpoint> endpoints_in_variable(const char* text) {
    const Variable variable{nodes_variable, text};
    return endpoints({});
}

TEST(NodesVariable, MayHaveCommasWithoutAnAddressBetweenThem) {
    const auto nodes = endpoints_in_variable(",127.0.0.1:1,, 127.0.0.1:2 , ,");
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[0].port, 1);
    EXPECT_EQ(nodes[1].port, 2);
}

// The Sentinels of a node are separated by commas, too.
TEST(NodesVariable, MayHaveSentinelsBetweenOtherNodes) {
    const auto nodes =
        endpoints_in_variable("127.0.0.1:1,redis+sentinel://127.0.0.1:2,127.0.0.1:3/m,127.0.0.1:4");
    ASSERT_EQ(nodes.size(), 3U);
    EXPECT_EQ(nodes[1].sentinels.size(), 2U);
    EXPECT_EQ(nodes[2].port, 4);
}

// The servers of a Cluster are separated by commas, too.
TEST(NodesVariable, MayHaveClustersBetweenOtherNodes) {
    struct Case {
        const char* list;
        std::vector<std::string> names;
        std::size_t seeds;  // of the first Cluster
    };
    const Case cases[] = {
        {"redis+cluster://:a,b@c1,c2,c3", {"cluster@c1:6379"}, 3},
        {"redis+cluster://c1,c2, redis://h", {"cluster@c1:6379", "h:6379"}, 2},
        {"redis+cluster://c1,c2/,h", {"cluster@c1:6379", "h:6379"}, 2},
        {"rediss+cluster://c1,c2?server_name=x,h", {"cluster@c1:6379", "h:6379"}, 2},
        {"redis+cluster://c1,redis+cluster://d1:7000,d2", {"cluster@c1:6379", "cluster@d1:7000"}, 1},
        {"h,redis+cluster://c1,c2", {"h:6379", "cluster@c1:6379"}, 2},
    };
    for (const auto& it : cases) {
        const auto nodes = endpoints_in_variable(it.list);
        std::vector<std::string> names;
        for (const auto& node : nodes) names.push_back(node.name());
        EXPECT_EQ(names, it.names) << it.list;
        const auto cluster =
            std::ranges::find_if(nodes, [](const Endpoint& node) { return !node.seeds.empty(); });
        ASSERT_NE(cluster, nodes.end());
        EXPECT_EQ(cluster->seeds.size(), it.seeds) << it.list;
    }
}

/// Sets REDLOCK_NODES, and returns the message about it.
std::string error_of_variable(const std::string& text) {
    const Variable variable{nodes_variable, text};
    return error_of({});
}

// A comma in a password that is not written as %2C. The first part of the address has no '@'.
TEST(NodesVariable, IsNotQuotedIfAPasswordMayBeAnywhereInIt) {
    EXPECT_EQ(
        error_of_variable("redis://app:12?s3cret,rest@h"),
        "REDLOCK_NODES, address 1: redlock: node address: query has an unknown field; known: none; commas "
        "separate the addresses, and a comma in a password is %2C");
    for (const auto* const text :
         {"redis://app:12?s3cret,rest@h", "redis://h,s3cret://x,redis://u:p@h", "s3cret://x,redis://u:p@h",
          "redis+sentinel://s/m?sentinel_password=a,redis://h?s3cret",
          "redis+sentinel://s/m?s3cret=1,redis://h?password=a", "redis://h:1?s3cret=1,@h"})
        EXPECT_THAT(error_of_variable(text), testing::Not(testing::HasSubstr("s3cret"))) << text;
    EXPECT_THAT(error_of_variable("redis://h,reddis://h"), testing::HasSubstr("\"reddis\""));
}

// As other programs have them.
TEST(NodesVariable, SaysHowAListIsWrittenIfItHasBlanksOrACommaInAPassword) {
    for (const auto* const text : {"a b", "redis://a redis://b", "redis://a\nredis://b",
                                   "redis://a;redis://b", "redis://:a,b@h", "redis://u:a,b@h"})
        EXPECT_THAT(error_of_variable(text),
                    testing::HasSubstr("; commas separate the addresses, and a comma "
                                       "in a password is %2C"))
            << text;
    EXPECT_THAT(error_of_variable("h:x"), testing::Not(testing::HasSubstr("commas")));
}

// The shell gives the list to --node in parts: --node redis://app:12?s3cret --node rest@h.
TEST(NodeOptions, AreNotQuotedIfAPasswordMayBeInOneOfThem) {
    const auto error = error_of({"--node", "redis://app:12?s3cret", "--node", "rest@h"});
    EXPECT_THAT(error,
                testing::StartsWith("--node, address 1: redlock: node address: query has an unknown field"));
    EXPECT_THAT(error, testing::Not(testing::HasSubstr("s3cret")));
    EXPECT_THAT(error_of({"--node", "reddis://h"}), testing::HasSubstr("\"reddis\""));
}

// " #" in a password begins a comment.
TEST_F(NodesFile, IsNotQuotedIfAPasswordMayBeInTheLine) {
    for (const auto* const line : {"redis://app:12?s3cret #rest@h", "s3cret://app # password=rest"}) {
        write(std::string{"127.0.0.1:1\n"} + line + '\n');
        EXPECT_THAT(error(), testing::StartsWith(path + ":2: redlock: node address: "));
        EXPECT_THAT(error(),
                    testing::EndsWith("; a '#' behind a blank begins a comment, and in a password they "
                                      "are %20 and %23"));
        EXPECT_THAT(error(), testing::Not(testing::HasSubstr("s3cret"))) << line;
    }
    write("127.0.0.1:1\nreddis://h # a typo\n");
    EXPECT_THAT(error(),
                testing::AllOf(testing::HasSubstr("\"reddis\""), testing::Not(testing::HasSubstr("%23"))));
    write("s3cret://app#password=rest\n");
    EXPECT_THAT(error(), testing::Not(testing::HasSubstr("behind a blank")));
}

// "$A,$B,$C" without these variables. The nodes of the file would be others.
TEST(NodesVariable, MustNameANodeUnlessItIsEmpty) {
    for (const auto* const text : {",,", " , ", " "})
        EXPECT_EQ(error_of_variable(text), "REDLOCK_NODES: names no node") << text;
}

}  // namespace
}  // namespace redlock::tool::node_arguments_test
