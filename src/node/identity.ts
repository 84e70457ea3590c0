import { readOrCreate } from '#lib/read-or-create.ts'
import { Id, newId } from '#model/id.ts'

/** Returns the id of this node. The first process to call this creates it; it is stored on the node's disk. */
export async function readOrCreateNodeId(path: string): Promise<string> {
  return Id.parse(await readOrCreate(path, newId))
}
