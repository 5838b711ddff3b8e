//! The `farpace` command. Everything it does is in the library, where tests and other programs reach it.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    farpace::cli::main()
}
