import type { OpenFile } from '#lib/files.ts'

/** Returns a file with some operations of its own; all others are those of `file`. It has no `readSync`, so each read can be seen. */
export function replaceOperations(file: OpenFile, own: Partial<OpenFile>): OpenFile {
  return {
    path: file.path,
    write: (chunks, position) => file.write(chunks, position),
    read: (into, position) => file.read(into, position),
    bytes: () => file.bytes(),
    truncate: (bytes) => file.truncate(bytes),
    isLinked: () => file.isLinked(),
    isNamed: () => file.isNamed(),
    sync: () => file.sync(),
    close: () => file.close(),
    ...own,
  }
}
