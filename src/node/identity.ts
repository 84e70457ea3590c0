import { mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Files, writeDurably } from '#lib/files.ts'
import { Id, newId } from '#model/id.ts'

/** The id of this node: made at its first start, kept as long as its disk. */
export async function nodeIdentity(files: Files, path: string): Promise<string> {
  const known = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (known !== undefined) return Id.parse(known.trim())
  const id = newId()
  await mkdir(dirname(path), { recursive: true })
  await writeDurably(files, path, Buffer.from(`${id}\n`))
  return id
}
