import { join } from 'node:path'
import { listParked } from '#delivery/crash-ledger.ts'
import type { SegmentSource } from '#delivery/segments.ts'
import type { Files } from '#lib/files.ts'
import { commitId } from '#model/commit.ts'

const usage = `Usage: inlet parked list | retry SEGMENT | skip SEGMENT

A segment that could not be converted again and again is parked: those behind it are delivered, and its records stay on disk.

  list            what is parked on this node, and why
  retry SEGMENT   try again, say after an upgrade
  skip SEGMENT    give up on it: the file stays as .quarantine for you to look at (inlet segment cat FILE)
`

export type ParkedOptions = {
  readonly nodeId: string
  readonly segments: SegmentSource
  readonly suspectsDirectory: string
  readonly files: Files
  readonly print: (text: string) => void
}

/** The operator's hand on parked segments. A running node notices within a second. */
export async function parkedCommand([verb, id, ...rest]: readonly string[], options: ParkedOptions): Promise<number> {
  const { suspectsDirectory, files, print } = options
  const takesId = verb === 'retry' || verb === 'skip'
  if ((verb !== 'list' && !takesId) || takesId !== (id !== undefined) || rest.length > 0) {
    print(usage)
    return verb === undefined || verb === '--help' ? 0 : 2
  }
  const parked = await listParked(files, suspectsDirectory)
  if (verb === 'list') {
    if (parked.size === 0) print('nothing is parked')
    for (const [name, { reason, at }] of parked) print(`${name}  parked ${at}  ${reason}`)
    return 0
  }
  if (id === undefined || !parked.has(id)) {
    print(`${id} is not parked; see: inlet parked list`)
    return 1
  }
  if (verb === 'skip') {
    const segment = (await options.segments.list()).find(
      ({ incarnation, seq, state }) => state === 'sealed' && commitId(options.nodeId, incarnation, seq) === id,
    )
    if (segment !== undefined) {
      const kept = await options.segments.quarantine(segment)
      print(`given up; its records stay in ${kept}`)
    }
  }
  await files.remove(join(suspectsDirectory, `${id}.parked.json`))
  if (verb === 'retry') print('it will be tried again')
  return 0
}
