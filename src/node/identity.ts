import { readOrCreate } from '#lib/read-or-create.ts'
import { Id, newId } from '#model/id.ts'

/** The id of this node: made at its first start, kept as long as its disk. Its processes all read the same one. */
export async function nodeIdentity(path: string): Promise<string> {
  return Id.parse(await readOrCreate(path, newId))
}
