/** Files on the real disk that end the process with SIGKILL at a chosen operation. */
import type { Files, OpenFile } from '#lib/files.ts'
import { replaceOperations } from './replace-operations.ts'

export type Moment = {
  readonly operation: 'write' | 'sync' | 'rename' | 'remove' | 'syncDirectory'
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
  const deadlyFile = (file: OpenFile) =>
    replaceOperations(file, {
      write: (chunks, position) => deadly('write', file.path, () => file.write(chunks, position)),
      sync: () => deadly('sync', file.path, () => file.sync()),
    })
  return {
    ...files,
    open: async (path, mode) => deadlyFile(await files.open(path, mode)),
    // Syncs directories too, which do not count.
    makeDirectory: (path) => files.makeDirectory(path),
    syncDirectory: (path) => deadly('syncDirectory', path, () => files.syncDirectory(path)),
    rename: (from, to) => deadly('rename', from, () => files.rename(from, to)),
    remove: (path) => deadly('remove', path, () => files.remove(path)),
  }
}

function die(): Promise<never> {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => undefined)
}
