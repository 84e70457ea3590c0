/** A machine adopts the log of a node whose other copy may still run: control believes one of them. */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { rebuildRegion } from '#cli/commits/rebuild-region.ts'
import { takeOver } from '#ingest/adopted/take-over.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { newId } from '#model/id.ts'
import { ControlClient, ControlError } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { Registration } from '#node/registration.ts'
import { insertDestination } from '#store/endpoints/destinations.ts'
import { aDestination } from '../store/fixtures.ts'
import { clientOf, newControl, newRegion, nodeToken, operatorToken, useControl } from '../support/control.ts'
import { deliverCommit } from '../support/deliver-commit.ts'
import { aCommit } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()
const operator = () => clientOf(control().call, operatorToken)
const signal = new AbortController().signal
const logger = createLogger('test', 'silent')
const nodeId = newId()
const region = newRegion()

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-adoption-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true })
  await operator().delete(`/v1/nodes/${nodeId}?force=true`)
  await release()
  // Nobody has the id any more.
  await control().store.db.deleteFrom('nodes').where('id', '=', nodeId).execute()
  await control().store.db.deleteFrom('former_credentials').where('node_id', '=', nodeId).execute()
})

const release = () => operator().delete(`/v1/nodes/${nodeId}/credential?release=true&force=true`)

const pathOf = (name: string) => join(directory, name, 'credential')
const copy = (from: string, to: string) => cp(dirname(pathOf(from)), dirname(pathOf(to)), { recursive: true })

/** A machine with a copy of the node's disk, as far as its credential goes. */
async function machine(name: string, at = control(), joinSecret: string | null = nodeToken) {
  const credential = await NodeCredential.open(nodeId, pathOf(name), system)
  const client = new ControlClient({ ...system, url: at.app.nodeApiUrl, credential, timeoutMs: 5_000 })
  const node = { region, ipv4: [], ipv6: [], ingest_address: '' }
  const registration = new Registration({ client, credential, joinSecret, node, logger })
  const adopt = async (more: Partial<ControlClient> = {}, stopping = signal) => {
    const own = {
      establishTrust: async () => undefined,
      fetchCommittedSeqs: (id: string, stop: AbortSignal) => client.fetchCommittedSeqs(id, stop),
      adopt: client.adopt.bind(client),
      ...more,
    }
    await takeOver({ ...system, control: own, credential, registration, logger, stopping })
  }
  return {
    ...{ client, adopt },
    register: () => registration.register(signal, true, true),
    /** As a process does that has just started. */
    start: () => registration.register(signal, true),
    standing: () =>
      client.fetchCommittedSeqs(nodeId, signal).then(
        () => 'accepted',
        (error: unknown) => (error instanceof ControlError ? (error.fence ?? error.status) : error),
      ),
  }
}

/** A node that control accepts, and a machine with a copy of its disk. */
async function copied(at = control()) {
  const living = await machine('living', at)
  await living.register()
  await copy('living', 'copy')
  return { living, adopting: await machine('copy', at) }
}

describe('an adoption', () => {
  test('has control refuse the machine before, which may not join again', async () => {
    const { living, adopting } = await copied()
    await adopting.adopt()
    expect([await living.standing(), await adopting.standing()]).toEqual(['node_adopted', 'accepted'])
    await expect(living.register()).rejects.toMatchObject({ fence: 'node_adopted' })
    const { items } = (await operator().get('/v1/installation/audit-events?operation=adoptNode&limit=1')).body
    expect(items).toMatchObject([{ resource_id: nodeId, actor: `node:${nodeId}` }])
  })

  test('can be adopted itself, and everybody before is refused', async () => {
    const { living, adopting } = await copied()
    await adopting.adopt()
    await copy('copy', 'next')
    const next = await machine('next')
    await next.adopt()
    expect([await living.standing(), await adopting.standing(), await next.standing()]).toEqual([
      ...['node_adopted', 'node_adopted'],
      'accepted',
    ])
  })

  test('of a copy that is older than another adoption is refused, until the id is released', async () => {
    const { living, adopting } = await copied()
    await copy('living', 'old')
    await adopting.adopt()
    const old = await machine('old')
    await expect(old.adopt()).rejects.toThrow(
      `another machine has adopted the log of this node since this copy was made: go on there; if it is lost, release the id (inlet nodes release ${nodeId})`,
    )
    expect([await living.standing(), await adopting.standing()]).toEqual(['node_adopted', 'accepted'])
    await release()
    // A start does not help, although it has the join secret.
    await expect(living.start()).rejects.toMatchObject({ fence: 'node_adopted' })
    await old.adopt()
    expect([await living.standing(), await adopting.standing(), await old.standing()]).toEqual([
      ...['node_adopted', 'node_released'],
      'accepted',
    ])
  })

  test.each(['removed', 'revoked', 'released', 'removed and released'])(
    'that was stopped is continued after the node was %s',
    async (what) => {
      const { living, adopting } = await copied()
      await adopting.adopt()
      if (what.startsWith('removed')) await operator().delete(`/v1/nodes/${nodeId}?force=true`)
      if (what.endsWith('released')) await release()
      if (what === 'revoked') await operator().delete(`/v1/nodes/${nodeId}/credential`)
      const why = {
        removed: 'an operator removed this node; create a join token',
        revoked: 'an operator revoked the credential of this node; create a join token',
      }[what]
      await expect((await machine('copy', control(), null)).adopt()).rejects.toThrow(
        why ?? 'an operator released the id of this node; create a join token',
      )
      const again = await machine('copy')
      await again.adopt()
      expect([await living.standing(), await adopting.standing(), await again.standing()]).toEqual([
        ...['node_adopted', { removed: 'node_adopted', revoked: 'node_revoked' }[what] ?? 'node_released'],
        'accepted',
      ])
    },
  )

  test.each(['the whole disk', 'the log alone'])(
    'by two machines at once, of %s: one gets the id, the other one is refused',
    async (what) => {
      if (what === 'the whole disk') await copied().then(() => copy('living', 'other'))
      const machines = await Promise.all([machine('copy'), machine('other')])
      const outcomes = await Promise.allSettled(machines.map(({ adopt }) => adopt()))
      expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      for (const { standing } of machines.filter((_, index) => outcomes[index]?.status === 'fulfilled'))
        expect(await standing()).toBe('accepted')
      const refusal = outcomes.find((outcome) => outcome.status === 'rejected')?.reason
      expect(refusal).toBeInstanceOf(UserError)
      expect(refusal.message).toMatch(/another (machine has adopted the log|one that adopts its log)/)
    },
  )

  test('ends its wait for control when it is stopped', async () => {
    const { adopting } = await copied()
    const stopping = new AbortController()
    const establishTrust = async () => {
      stopping.abort('SIGTERM')
      throw new Error('control is away')
    }
    await expect(adopting.adopt({ establishTrust }, stopping.signal)).rejects.toBe('SIGTERM')
  })

  test.each(['before control learned of it', 'after that'])('can be repeated if it was interrupted %s', async (when) => {
    const { living, adopting } = await copied()
    const stopping = new AbortController()
    const adopt: ControlClient['adopt'] = async (...call) => {
      if (when === 'after that') await adopting.client.adopt(...call)
      stopping.abort('SIGTERM')
      throw new Error('the machine stops')
    }
    await expect(adopting.adopt({ adopt }, stopping.signal)).rejects.toBe('SIGTERM')
    const again = await machine('copy')
    await again.adopt()
    expect([await living.standing(), await again.standing()]).toEqual(['node_adopted', 'accepted'])
  })

  test('that was interrupted before control learned of it says that the node was removed since', async () => {
    const { adopting } = await copied()
    const stopping = new AbortController()
    const adopt = async () => {
      stopping.abort('SIGTERM')
      throw new Error('the machine stops')
    }
    await expect(adopting.adopt({ adopt }, stopping.signal)).rejects.toBe('SIGTERM')
    await operator().delete(`/v1/nodes/${nodeId}?force=true`)
    await expect((await machine('copy', control(), null)).adopt()).rejects.toThrow('an operator removed this node; create')
    const again = await machine('copy')
    await again.adopt()
    expect(await again.standing()).toBe('accepted')
  })

  test('of a node whose id was released has control refuse the other copies as well', async () => {
    const { living, adopting } = await copied()
    await release()
    await adopting.adopt()
    // Neither while it runs, nor at its next start, although it has the join secret.
    await expect(living.register()).rejects.toMatchObject({ fence: 'node_released' })
    await expect(living.start()).rejects.toMatchObject({ fence: 'node_released' })
    expect([await living.standing(), await adopting.standing()]).toEqual(['node_released', 'accepted'])
  })

  test('of a node whose id was released needs a join token', async () => {
    await copied()
    await release()
    await expect((await machine('copy', control(), null)).adopt()).rejects.toThrow(
      'an operator released the id of this node; create a join token',
    )
    await expect((await machine('copy', control(), 'w'.repeat(32))).adopt()).rejects.toThrow(
      'control does not let this node join: the join secret or join token is not known',
    )
  })
})

/** A node that delivered once, was cut off from control, and then delivered again; and a machine with a copy of its disk. */
async function cutOff() {
  const lines: string[] = []
  const at = await newControl({ rebuildRegion, onLog: (line) => lines.push(line) })
  const account = await at.newAccount()
  const destination = await insertDestination(at.store.db, account.account_id, aDestination(), Date.now())
  const { living, adopting } = await copied(at)
  const { body: endpoint } = await account.post('/v1/endpoints', { region, destination_id: destination.id })
  const deliver = (seq: number) => deliverCommit(at.directory, destination, aCommit(nodeId, endpoint.id, seq))
  const beat = ({ client }: typeof living) => {
    const well = { node_id: nodeId, applied_epoch: 1, healthy: true, reasons: [] }
    return client.sendHeartbeat({ process: 'delivery', ...well, lag: [] }, signal)
  }
  await living.client.sendCommits([await deliver(1)], signal)
  const before = Date.now()
  await beat(living)
  const after = Date.now()
  at.clock.advance(600_000)
  await deliver(2)
  const commits = async () => (await account.get(`/v1/endpoints/${endpoint.id}/commits`)).body
  return {
    ...{ at, living, adopting, deliver, beat, commits, silence: { before, after } },
    notes: () => lines.filter((line) => line.includes('a node that lost its place is back')).length,
    reasons: async () => (await account.get(`/v1/endpoints/${endpoint.id}`)).body.status_reasons.join(),
  }
}

describe('commits of a machine that control refuses, because its log was adopted while it was cut off', () => {
  test.each(['', ' and the node removed'])('are recorded from its markers once it is back%s', async (more) => {
    const { at, living, adopting, deliver, beat, commits, silence, notes, reasons } = await cutOff()
    await using _ = at
    await adopting.adopt()
    await beat(adopting)
    expect(await adopting.standing()).toBe('accepted')
    if (more !== '') await clientOf(at.call, operatorToken).delete(`/v1/nodes/${nodeId}?force=true`)
    expect((await commits()).may_lack_commits_since).toBeNull()

    const refusals = await Promise.all(Array.from({ length: 5 }, () => living.standing()))
    expect([new Set(refusals), notes()]).toEqual([new Set(['node_adopted']), 1])
    const since = (await commits()).may_lack_commits_since
    expect(Date.parse(since)).toBeGreaterThanOrEqual(silence.before)
    expect(Date.parse(since)).toBeLessThanOrEqual(silence.after)
    expect(await reasons()).toContain(`commits since ${since} may be missing`)
    // Its delivery does not know yet.
    await deliver(3)
    at.clock.advance(60_000)
    await until('all commits', async () => (await commits()).items.length === 3)
    await until('nothing to be missing', async () => (await commits()).may_lack_commits_since === null)
    expect(await reasons()).not.toContain('may be missing')

    expect([await living.standing(), notes()]).toEqual(['node_adopted', 1])
    expect((await commits()).may_lack_commits_since).toBeNull()
  })
})
