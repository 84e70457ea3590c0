import type { Endpoint } from '../../api/endpoints.ts'
import { formatBytes } from '../../design/format.ts'

type Facts = Pick<Endpoint, 'destination_name' | 'destination_status' | 'lag'>

/** Returns what happens to clients and to the data that waits once an endpoint is deleted. */
export function removalEffects({ destination_name, destination_status, lag }: Facts): readonly string[] {
  return [
    'Clients that send to it get errors from now on. This cannot be undone.',
    waitingData({ destination_name, destination_status, lag }),
    'Files that it delivered stay in the bucket.',
  ]
}

function waitingData({ destination_name, destination_status, lag: { undelivered_bytes, parked_segments } }: Facts): string {
  if (undelivered_bytes === 0)
    return 'No data waits on the nodes. What arrives until then is delivered before the endpoint is gone.'
  const waiting = `${formatBytes(undelivered_bytes)} ${undelivered_bytes === 1 ? 'waits' : 'wait'} on the nodes`
  if (destination_name === null)
    return `${waiting}, and there is no destination for them. The endpoint is gone only once you have chosen one and they are delivered.`
  if (destination_status !== 'valid')
    return `${waiting}. They go to the destination “${destination_name}”, which is not validated: if it refuses them, the endpoint is not gone until you choose another.`
  const parked =
    parked_segments === 0 ? '' : ' Some segments are parked, because they could not be delivered: they hold the endpoint back.'
  return `${waiting}. They are delivered to the destination “${destination_name}” before the endpoint is gone.${parked}`
}
