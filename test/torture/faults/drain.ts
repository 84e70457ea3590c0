/** Creates an endpoint, sends to it for a while, and deletes it. It must be gone at the end of the round, and its records committed. */
import type { Fault } from '../plan.ts'
import type { Rig } from '../rig.ts'
import type { Heal } from './heal.ts'

export function drain({ sendForMs }: Extract<Fault, { kind: 'drain' }>, rig: Rig): Heal {
  rig.inBackground('drain', async () => {
    const endpoint = await rig.createEndpoint({ segment_max_age_seconds: 3600 })
    const sender = rig.send(endpoint, 'http')
    await new Promise((resolve) => setTimeout(resolve, sendForMs))
    endpoint.isDeleted = true
    await rig.management.call('DELETE', `/v1/endpoints/${endpoint.id}`)
    await sender.stop()
  })
  return undefined
}
