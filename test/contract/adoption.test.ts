/** A machine adopts the log of a node whose other copy may still run: control believes one of them. */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { takeOver } from '#ingest/adopted/take-over.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { ControlClient, ControlError } from '#node/control-client.ts'
import { NodeCredential } from '#node/credential.ts'
import { Registration } from '#node/registration.ts'
import { clientOf, newRegion, nodeToken, operatorToken, useControl } from '../support/control.ts'

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
  await operator().delete(`/v1/nodes/${nodeId}/credential?release=true`)
})

const pathOf = (name: string) => join(directory, name, 'credential')
const copy = (from: string, to: string) => cp(dirname(pathOf(from)), dirname(pathOf(to)), { recursive: true })

/** A machine with a copy of the node's disk, as far as its credential goes. */
async function machine(name: string) {
  const credential = await NodeCredential.open(nodeId, pathOf(name), system)
  const client = new ControlClient({ ...system, url: control().app.nodeApiUrl, credential, timeoutMs: 5_000 })
  const node = { region, ipv4: [], ipv6: [], ingest_address: '' }
  const registration = new Registration({ client, credential, joinSecret: nodeToken, node, logger })
  const adopt = async (more: Partial<ControlClient> = {}) => {
    const own = {
      establishTrust: async () => undefined,
      fetchCommittedSeqs: (id: string, stop: AbortSignal) => client.fetchCommittedSeqs(id, stop),
      adopt: client.adopt.bind(client),
      ...more,
    }
    await takeOver({ ...system, control: own, credential, logger })
  }
  return {
    ...{ client, adopt },
    register: () => registration.register(signal, true, true),
    standing: () =>
      client.fetchCommittedSeqs(nodeId, signal).then(
        () => 'accepted',
        (error: unknown) => (error instanceof ControlError ? (error.fence ?? error.status) : error),
      ),
  }
}

/** A node that control accepts, and a machine with a copy of its disk. */
async function copied() {
  const living = await machine('living')
  await living.register()
  await copy('living', 'copy')
  return { living, adopting: await machine('copy') }
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

  test('of a copy that is older than another adoption is refused, and says what to do', async () => {
    const { living, adopting } = await copied()
    await copy('living', 'old')
    await adopting.adopt()
    const old = await machine('old')
    await expect(old.adopt()).rejects.toThrow('another machine has adopted the log of this node since this copy was made')
    expect([await living.standing(), await adopting.standing()]).toEqual(['node_adopted', 'accepted'])
  })

  test.each(['before control learned of it', 'after that'])('can be repeated if it was interrupted %s', async (when) => {
    const { living, adopting } = await copied()
    const adopt: ControlClient['adopt'] = async (...call) => {
      if (when === 'after that') await adopting.client.adopt(...call)
      throw new Error('the machine stops')
    }
    // It waits for control in vain, and is stopped meanwhile.
    const failed = new Promise<void>((resolve) => {
      adopting.adopt({ adopt: (...call) => adopt(...call).finally(resolve) }).catch(() => undefined)
    })
    await failed
    const again = await machine('copy')
    await again.adopt()
    expect([await living.standing(), await again.standing()]).toEqual(['node_adopted', 'accepted'])
  })

  test('of a node that control does not know is left to the registration', async () => {
    const { living, adopting } = await copied()
    await operator().delete(`/v1/nodes/${nodeId}/credential?release=true`)
    await adopting.adopt()
    await adopting.register()
    expect([await living.standing(), await adopting.standing()]).toEqual(['accepted', 'accepted'])
  })
})
