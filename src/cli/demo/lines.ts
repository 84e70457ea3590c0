/** Reads lines as latin1 strings, which preserve every byte. */
import { type FileHandle, open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { GiB } from '#lib/bytes.ts'
import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'

/** Reads the lines of a file, without blank ones. */
export async function readLines(path: string): Promise<readonly string[]> {
  await using file = await openFile(resolve(path))
  const lines: string[] = []
  for await (const line of file.readLines({ encoding: 'latin1', autoClose: false })) if (line.trim() !== '') lines.push(line)
  if (lines.length === 0) throw new UserError(`${path} is empty: the demo needs at least one line of JSON`)
  return lines
}

async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path).catch((error: unknown) => {
    const code = errorCode(error)
    throw new UserError(code === 'ENOENT' ? `there is no file ${path}` : `${path} cannot be read (${code ?? String(error)})`)
  })
  const stats = await file.stat()
  const problem = !stats.isFile()
    ? 'is not a file'
    : stats.size > GiB
      ? 'is too large for the demo, which takes up to 1 GiB'
      : undefined
  if (problem === undefined) return file
  await file.close()
  throw new UserError(`${path} ${problem}`)
}
