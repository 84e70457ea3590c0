/** The real BIND and Pebble of `npm run test:services`. */
import { randomUUID } from 'node:crypto'
import { describe } from 'vitest'
import type { BindDescription } from '../../tools/services/bind.ts'
import type { PebbleDescription } from '../../tools/services/pebble.ts'

const described = process.env['INLET_TEST_NAME_SERVER']
const describedAcme = process.env['INLET_TEST_ACME']

/** Declares a suite that needs the name server. */
export function describeNameServer(name: string, suite: (nameServer: BindDescription) => void): void {
  if (described !== undefined) describe(name, () => suite(JSON.parse(described)))
  else describe.skip(`${name} (skipped: INLET_TEST_NAME_SERVER is not set, see npm run test:services)`, () => undefined)
}

/** Declares a suite that needs the ACME server, which validates challenges at the name server. */
export function describeAcme(name: string, suite: (acme: PebbleDescription, nameServer: BindDescription) => void): void {
  if (described !== undefined && describedAcme !== undefined)
    describe(name, () => suite(JSON.parse(describedAcme), JSON.parse(described)))
  else describe.skip(`${name} (skipped: INLET_TEST_ACME is not set, see npm run test:services)`, () => undefined)
}

/** Returns a domain inside the zone of the name server that no other test uses. */
export function freshDomain({ zones: [zone = ''] }: BindDescription): string {
  return `${randomUUID().slice(0, 8)}.${zone}`
}
