import { expect, test } from 'vitest'
import { nextStep } from './next-step.ts'

const delivered = { destination_id: 'd', destination_status: 'valid', status_reasons: [] } as const

test.each([
  ['active', { ...delivered, status: 'active' }, 'test'],
  ['without a destination', { ...delivered, status: 'degraded', destination_id: null, destination_status: null }, 'settings'],
  [
    'with a destination that was never validated',
    { ...delivered, status: 'degraded', destination_status: 'pending' },
    'destinations',
  ],
  ['paused by its owner', { ...delivered, status: 'paused', status_reasons: ['the endpoint is paused'] }, 'resume'],
  [
    'of a suspended account',
    { ...delivered, status: 'paused', status_reasons: ['the account is suspended by the operator'] },
    'operator',
  ],
  ['that nodes do not know yet', { ...delivered, status: 'deploying' }, 'wait'],
  [
    'in a region without nodes',
    { ...delivered, status: 'deploying', status_reasons: ['no node serves region fra; regions with nodes: loc'] },
    'operator',
  ],
  ['being deleted, even without a destination', { ...delivered, status: 'draining', destination_id: null }, 'wait'],
  ['that no node serves', { ...delivered, status: 'failed' }, 'operator'],
] as const)('the next step of an endpoint %s', (_name, endpoint, action) => {
  expect(nextStep(endpoint, true)).toMatchObject({ action, text: expect.stringMatching(/\.$/) })
  // The API refuses every change of a viewer.
  expect(['wait', 'operator']).toContain(nextStep(endpoint, false).action)
})
