import { findEmptyRegion } from '../../../../src/model/empty-region.ts'
import type { Endpoint } from '../../api/endpoints.ts'

/** Next step for a person, in words, and the screen or action for it. */
export type NextStep = {
  readonly text: string
  readonly action: 'test' | 'settings' | 'destinations' | 'resume' | 'wait' | 'operator'
}

type Facts = Pick<Endpoint, 'status' | 'destination_id' | 'destination_status'> & { readonly status_reasons: readonly string[] }

/** Returns the one step that helps most. A viewer of the account can take none, and reads who can. */
export function nextStep(endpoint: Facts, mayChange: boolean): NextStep {
  const step = stepOf(endpoint)
  if (mayChange || step.action === 'wait' || step.action === 'operator') return step
  return { text: viewersTexts[step.action], action: 'wait' }
}

const viewersTexts = {
  test: 'Its figures are below. To send to it, ask a member of the account for an API key.',
  settings: 'A member of the account has to choose a destination. Until then, data is accepted and kept on the nodes.',
  destinations: 'A member of the account has to validate the destination, so that Inlet may write to the bucket.',
  resume: 'A member of the account can resume it. What it has is delivered meanwhile.',
} as const

function stepOf(endpoint: Facts): NextStep {
  const { status, destination_id, destination_status, status_reasons } = endpoint
  if (status === 'draining')
    return { text: 'It refuses new data, delivers what it has, and is then gone. There is nothing to do.', action: 'wait' }
  if (destination_id === null)
    return { text: 'Choose a destination. Until then, data is accepted and kept on the nodes.', action: 'settings' }
  if (destination_status !== 'valid')
    return { text: 'Validate the destination, so that Inlet may write to the bucket.', action: 'destinations' }
  if (status === 'paused') {
    return status_reasons.some((reason) => reason.startsWith('the account is suspended'))
      ? { text: 'Ask the operator of this installation why the account is suspended.', action: 'operator' }
      : { text: 'Resume it to accept data again. What it has is delivered meanwhile.', action: 'resume' }
  }
  if (status === 'active') return { text: 'Send a test event and follow it to its row in Parquet.', action: 'test' }
  const empty = findEmptyRegion(status_reasons)
  if (empty !== undefined)
    return {
      text: `Create another endpoint in a region that has nodes, or start a node in this one: ${empty}.`,
      action: 'operator',
    }
  if (status === 'deploying') return { text: 'Nodes learn of it within seconds. Wait a moment.', action: 'wait' }
  return { text: 'Somebody who runs the nodes has to look at the reasons above.', action: 'operator' }
}
