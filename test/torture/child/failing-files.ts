/** Files that fail as the steering says: a full disk, a broken one, or one that became read-only. */
import type { Files } from '#lib/files.ts'
import { overriding } from './overriding.ts'
import type { FileFault, FileOperation, Steered } from './steering.ts'

export function failingFiles(base: Files, steered: Steered): Files {
  const faultOf = (operation: FileOperation, path: string): FileFault | undefined =>
    steered.now.files.find(
      ({ operations, matches, share }) =>
        operations.includes(operation) && new RegExp(matches).test(path) && Math.random() < share,
    )
  const check = (operation: FileOperation, path: string): void => {
    const fault = faultOf(operation, path)
    if (fault !== undefined) throw systemError(fault, operation, path)
  }
  return {
    ...base,
    async open(path, mode) {
      check(mode === 'create' ? 'create' : 'open', path)
      const file = await base.open(path, mode)
      return overriding(file, {
        async write(chunks: readonly Uint8Array[], position: number) {
          const fault = faultOf('write', path)
          if (fault === undefined) return await file.write(chunks, position)
          // As on a real disk, a part of the bytes arrives.
          const bytes = Buffer.concat(chunks)
          await file.write([bytes.subarray(0, Math.floor(bytes.length * Math.random()))], position)
          throw systemError(fault, 'write', path)
        },
        async read(into: Uint8Array, position: number) {
          check('read', path)
          return await file.read(into, position)
        },
        async sync() {
          check('sync', path)
          await file.sync()
        },
        async truncate(bytes: number) {
          check('names', path)
          await file.truncate(bytes)
        },
      })
    },
    async read(path) {
      check('read', path)
      return await base.read(path)
    },
    async list(path) {
      check('list', path)
      return await base.list(path)
    },
    async makeDirectory(path) {
      check('create', path)
      await base.makeDirectory(path)
    },
    async syncDirectory(path) {
      check('sync', path)
      await base.syncDirectory(path)
    },
    async rename(from, to) {
      check('names', from)
      await base.rename(from, to)
    },
    async link(from, to) {
      check('names', to)
      await base.link(from, to)
    },
    async remove(path) {
      check('names', path)
      await base.remove(path)
    },
    async removeDirectory(path) {
      check('names', path)
      await base.removeDirectory(path)
    },
    async touch(path) {
      check('names', path)
      await base.touch(path)
    },
  }
}

function systemError({ code }: FileFault, operation: string, path: string): Error {
  return Object.assign(new Error(`${code}: injected, ${operation} '${path}'`), { code })
}
