/**
 * The id of this node. Names of objects, markers and commits are made of it, together with the log of the node.
 *
 * Owns: `node/id`, and the copy of the id in the WAL directory. Does not own: the registration with control.
 * Law: the id and the log belong together. A log is never used under another id than the one that its segments were written under: its
 * delivered segments would not be recognised, and would be committed a second time.
 */
import { dirname } from 'node:path'
import { lockExclusively } from '#lib/exclusive.ts'
import { systemFiles, writeDurably } from '#lib/files.ts'
import { readOrCreate, readTrimmed } from '#lib/read-or-create.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { Id, newId } from '#model/id.ts'

export type IdentityPaths = {
  /** The id of the node. */
  readonly nodeId: string
  /** The id of the node that the log belongs to, beside the log. */
  readonly walNodeId: string
}

export type AdoptPaths = IdentityPaths & { readonly ingestLock: string; readonly deliveryLock: string }

/** Returns the id of this node. The first process to call this creates it. Throws UserError if the log belongs to another node. */
export async function readOrCreateNodeId({ nodeId, walNodeId }: IdentityPaths): Promise<string> {
  // Read in this order: another process that creates both begins with the id of the node.
  const owner = await readId(walNodeId, 'to take the log over under the id of this node')
  const own = await readId(nodeId, owner === undefined ? undefined : `to continue as node ${owner}, which the log belongs to`)
  const log = dirname(walNodeId)
  if (own === undefined && owner !== undefined) {
    throw new UserError(
      `this node has lost its id: ${nodeId} is missing, and the log in ${log} belongs to node ${owner}. Start once with --adopt to continue as that node, or move the log away to start as a new one`,
    )
  }
  if (own !== undefined && owner !== undefined && own !== owner) {
    throw new UserError(
      `the log in ${log} belongs to node ${owner}, but this node is ${own} (${nodeId}). Start once with --adopt to continue as node ${owner}, or move the log back to that node`,
    )
  }
  const id = await readOrCreate(nodeId, newId)
  // Created before the log has a segment, so a log of this node always has its id.
  await readOrCreate(walNodeId, () => id)
  return Id.parse(id)
}

/**
 * Makes this node the one that its log belongs to. A log without a readable id gets the id of this node. Does nothing if the two agree.
 * Throws LockHeldError while ingest or delivery run.
 */
export async function adoptWal({ nodeId, walNodeId, ingestLock, deliveryLock }: AdoptPaths, logger: Logger): Promise<void> {
  using _ingest = lockExclusively(ingestLock)
  using _delivery = lockExclusively(deliveryLock)
  const [own, owner] = [await readTrimmed(nodeId), await readTrimmed(walNodeId)]
  if (Id.safeParse(owner).success) {
    if (own === owner) return
    await writeDurably(systemFiles, nodeId, Buffer.from(`${owner}\n`))
    logger.warn({ before: own ?? null, now: owner }, 'log adopted: the node continues under the id that the log belongs to')
  } else if (owner !== undefined && Id.safeParse(own).success) {
    await writeDurably(systemFiles, walNodeId, Buffer.from(`${own}\n`))
    logger.warn({ now: own }, 'log adopted: its id could not be read, and it continues under the id of this node')
  }
}

/** Throws UserError if there is something else in the file. `adopting` says what --adopt would do. */
async function readId(path: string, adopting: string | undefined): Promise<string | undefined> {
  const text = await readTrimmed(path)
  if (text === undefined || Id.safeParse(text).success) return text
  const wrong = text === '' ? 'is empty' : 'is not the id of a node'
  const remedy =
    adopting === undefined
      ? 'restore it, or delete it to start as a new node'
      : `restore it, or start once with --adopt ${adopting}`
  throw new UserError(`${path} ${wrong}: ${remedy}`)
}
