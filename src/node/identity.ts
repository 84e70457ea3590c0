import { type Files, writeDurably } from '#lib/files.ts'
import { Id, newId } from '#model/id.ts'

/** The id of this node: made at its first start, kept as long as its disk. */
export async function nodeIdentity(files: Files, path: string): Promise<string> {
  const known = await files.read(path)
  if (known !== undefined) return Id.parse(Buffer.from(known).toString('utf8').trim())
  const id = newId()
  await writeDurably(files, path, Buffer.from(`${id}\n`))
  return id
}
