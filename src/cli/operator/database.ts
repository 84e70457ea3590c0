/** `inlet database`: shows which database this is, and says that nodes should follow it. Directly in the database, so that it works while control is down. */
import { isoTimestamp } from '#lib/clock.ts'
import { findFirstAccount } from '#store/accounts/accounts.ts'
import { beginGeneration, currentPosition, inNewEpoch } from '#store/cluster/epoch.ts'
import { listMissingCommits, noteMissingCommits } from '#store/commits/missing-commits.ts'
import { listNodeInventories, type NodeInventory } from '#store/nodes/node-inventory.ts'
import { newestHeartbeat } from '#store/nodes/nodes.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { audited } from './audited.ts'
import { listAll, openCommandStore } from './store.ts'

export async function showDatabase(this: CliContext, flags: JsonFlags): Promise<void> {
  await using store = await openCommandStore(this)
  const { database, generation, epoch } = await currentPosition(store.db)
  const missing = (await listMissingCommits(store.db)).map(({ region, since }) => ({ region, since: isoTimestamp(since) }))
  const refusing = (await listAll((page) => listNodeInventories(store.db, page))).flatMap(keptOf)
  const accepted_at = generation === 0 ? null : isoTimestamp(generation)
  const lines = [
    `database ${database}, epoch ${epoch}${accepted_at === null ? '' : `, accepted at ${accepted_at}`}`,
    ...refusing.map(
      ({ node_id, kept_epoch }) =>
        `node ${node_id} keeps its configuration of epoch ${kept_epoch}, and refuses that of this database`,
    ),
    ...(refusing.length === 0 ? [] : ['Put the right database in its place, or accept this one: inlet database accept']),
    ...missing.map(({ region, since }) => `commits since ${since} may be missing${region === '*' ? '' : ` in region ${region}`}`),
    ...(missing.length === 0 ? [] : ['Record them again: inlet commits rebuild']),
  ]
  printResult(this, flags, { id: database, epoch, accepted_at, refusing, missing_commits: missing }, `${lines.join('\n')}\n`)
}

function keptOf({ id, ingest, delivery }: NodeInventory): readonly { readonly node_id: string; readonly kept_epoch: number }[] {
  const kept = ingest?.kept_position ?? delivery?.kept_position
  return kept == null ? [] : [{ node_id: id, kept_epoch: kept.epoch }]
}

/** Commits that were delivered after the last heartbeat in it may be missing from an older copy. A database without an account has lost none. */
export async function acceptDatabase(this: CliContext, flags: JsonFlags): Promise<void> {
  await using store = await openCommandStore(this)
  const now = this.clock.now()
  const isEmpty = (await findFirstAccount(store.db)) === undefined
  const since = (await newestHeartbeat(store.db)) ?? 0
  const what = { operation: 'acceptDatabase', account_id: null, resource_id: null }
  await audited(store, this.clock, what, () =>
    inNewEpoch(store, async (db) => {
      await beginGeneration(db, now)
      if (!isEmpty) await noteMissingCommits(db, null, since, now)
    }),
  )
  const { database, epoch } = await currentPosition(store.db)
  const next = isEmpty
    ? 'It has no account: start Inlet, which creates the first one with a key and an endpoint.'
    : 'Then record what was delivered after it was copied: inlet commits rebuild'
  printResult(
    this,
    flags,
    { id: database, epoch, accepted: true },
    `Nodes follow this database from now on, whatever they had before.\n${next}\n`,
  )
}
