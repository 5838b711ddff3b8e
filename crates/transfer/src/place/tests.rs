use super::*;

/// Breaks: a second sender of the same name writes into the file that the first one has completed.
#[test]
fn a_partial_file_that_got_its_name_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let dir = OwnedFd::from(File::open(folder.path()).unwrap());
    let first = create(&dir, "part").unwrap();
    assert!(is_named(&first, &dir, "part"));
    assert!(create(&dir, "part").is_err(), "it is locked");
    // The other sender has opened it before this, and locks it after this.
    let second = File::open(folder.path().join("part")).unwrap();
    std::fs::rename(folder.path().join("part"), folder.path().join("whole")).unwrap();
    drop(first);
    lock(&second).unwrap();
    assert!(!is_named(&second, &dir, "part"));
    let third = create(&dir, "part").unwrap();
    assert!(is_named(&third, &dir, "part") && !is_named(&third, &dir, "whole"));
}

/// Breaks: a tree with directories that even their owner may only read is copied once and never again; or
/// a directory that was named as the target loses permissions that its user gave it.
#[test]
fn a_directory_is_writable_until_it_is_sealed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let name = |rename: Option<&str>| {
        let policy = WritePolicy { rename: rename.map(OsString::from), ..WritePolicy::default() };
        Destination::new(folder.path(), policy).unwrap()
    };
    let mode =
        |path: &str| std::fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o7777;
    let made = 0o2000 | (0o755 & !u32::from(umask()));
    for (path, before, rename, sealed) in
        [("dir", 0o2555, None, made), ("target", 0o3557, Some("target"), 0o3557)]
    {
        let full = folder.path().join(path);
        std::fs::create_dir(&full).unwrap();
        std::fs::set_permissions(&full, std::fs::Permissions::from_mode(before)).unwrap();
        let (place, path) = (name(rename), RelPath::new(path.as_bytes()).unwrap());
        let root = OwnedFd::from(File::open(folder.path()).unwrap());
        let seal = place.make_directory(&root, &path, 0o755, &Peer::Proved).unwrap();
        assert_eq!(mode(&path.to_string()), before | 0o700);
        place.seal(&path, &Peer::Proved, seal, (0o755, FileTime { seconds: 5, nanos: 0 }));
        assert_eq!(mode(&path.to_string()), sealed, "{path}");
        assert_eq!(std::fs::metadata(&full).unwrap().mtime(), 5);
    }
}

/// Breaks: a directory that has the name of a partial file keeps that file from ever arriving, and nobody
/// is told why.
#[test]
fn a_directory_in_the_place_of_a_partial_file_goes_or_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let dir = OwnedFd::from(File::open(folder.path()).unwrap());
    std::fs::create_dir(folder.path().join("part")).unwrap();
    assert!(create(&dir, "part").is_ok());
    std::fs::create_dir_all(folder.path().join("other/full")).unwrap();
    let fault = create(&dir, "other").unwrap_err();
    assert!(fault.text.contains("has the name of its partial file, other: remove it"), "{fault}");
    std::fs::write(folder.path().join("file"), "x").unwrap();
    let path = RelPath::new(b"file").unwrap();
    std::fs::create_dir(folder.path().join(path.partial_link_name())).unwrap();
    let policy = WritePolicy { overwrite: true, ..WritePolicy::default() };
    let place = Destination::new(folder.path(), policy).unwrap();
    place.make_link(&dir, &path, b"target", &Peer::Proved).unwrap();
    assert!(folder.path().join("file").is_symlink());
}

/// Breaks: with `--sync` a file that was acknowledged is gone after a power failure, because its name, or
/// that of a directory above it, was not on the disk.
#[test]
fn names_come_to_the_disk_with_their_files() {
    for (sync, settled) in [(false, 0), (true, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let policy = WritePolicy { sync, overwrite: true, ..WritePolicy::default() };
        let place = Destination::new(folder.path(), policy).unwrap();
        let root = OwnedFd::from(File::open(folder.path()).unwrap());
        let path = |name: &str| RelPath::new(name.as_bytes()).unwrap();
        place.make_directory(&root, &path("dir"), 0o755, &Peer::Proved).unwrap();
        // Made, and then replaced.
        for target in [b"a", b"b"] {
            place.make_link(&root, &path("link"), target, &Peer::Proved).unwrap();
        }
        let kind = EntryKind::File { size: 0 };
        let entry = FileEntry { path: path("file"), kind, mode: 0o644, modified: FileTime::default() };
        let wanted = Wanted { entry, resumed: None };
        place.open(wanted, &Peer::Proved, 0).unwrap().keep(&place, &[0; 32]).unwrap();
        assert_eq!(place.settled.load(Ordering::Relaxed), settled);
    }
}

/// Breaks: nobody can copy into a home directory below one that may be passed but not read.
#[test]
fn a_place_need_not_be_readable() {
    let folder = tempfile::tempdir().unwrap();
    let place = Destination::new(folder.path(), WritePolicy::default()).unwrap();
    // As root the test may read everything.
    assert!(sys::fcntl_getfl(&place.root).unwrap().contains(OFlags::PATH));
}
