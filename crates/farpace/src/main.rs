//! The `farpace` command. Everything it does is in the library, where tests and other programs reach it.

fn main() -> std::process::ExitCode {
    farpace::cli::main()
}
