/** Files on the real disk that end the process with SIGKILL at a chosen operation. */
import type { Files, OpenFile } from '#lib/files.ts'

export type Moment = {
  readonly operation: 'write' | 'sync' | 'rename' | 'link' | 'remove' | 'syncDirectory'
  readonly when: 'before' | 'after'
  /** Called for each operation of that kind. The process dies at the first one for which it returns true. */
  readonly matches: (path: string, call: number) => boolean
}

export function deadlyFiles(files: Files, { operation, when, matches }: Moment): Files {
  let calls = 0
  const deadly = async <T>(name: Moment['operation'], path: string, act: () => Promise<T>): Promise<T> => {
    if (name !== operation || !matches(path, calls++)) return await act()
    if (when === 'before') return await die()
    await act()
    return await die()
  }
  const deadlyFile = (file: OpenFile): OpenFile => ({
    path: file.path,
    write: (chunks, position) => deadly('write', file.path, () => file.write(chunks, position)),
    read: (into, position) => file.read(into, position),
    bytes: () => file.bytes(),
    truncate: (bytes) => file.truncate(bytes),
    isLinked: () => file.isLinked(),
    isNamed: () => file.isNamed(),
    sync: () => deadly('sync', file.path, () => file.sync()),
    close: () => file.close(),
  })
  return {
    open: async (path, mode) => deadlyFile(await files.open(path, mode)),
    read: (path) => files.read(path),
    bytes: (path) => files.bytes(path),
    list: (path) => files.list(path),
    changedAt: (path) => files.changedAt(path),
    makeDirectory: (path) => files.makeDirectory(path),
    makeTemporaryDirectory: (path) => files.makeTemporaryDirectory(path),
    temporaryPath: (path) => files.temporaryPath(path),
    syncDirectory: (path) => deadly('syncDirectory', path, () => files.syncDirectory(path)),
    rename: (from, to) => deadly('rename', from, () => files.rename(from, to)),
    link: (from, to) => deadly('link', from, () => files.link(from, to)),
    copy: (from, to) => files.copy(from, to),
    setAccess: (path, mode, groupId) => files.setAccess(path, mode, groupId),
    remove: (path) => deadly('remove', path, () => files.remove(path)),
    removeDirectory: (path) => files.removeDirectory(path),
    removeTree: (path) => files.removeTree(path),
    touch: (path) => files.touch(path),
    watch: (path, onChange) => files.watch(path, onChange),
    space: (path) => files.space(path),
  }
}

function die(): Promise<never> {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => undefined)
}
