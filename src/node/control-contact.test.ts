import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { ControlContact } from './control-contact.ts'

function made() {
  const clock = new ManualClock()
  return { clock, contact: new ControlContact(clock) }
}

test('changes may be missing from the start until the first poll, whatever else control answers', () => {
  const { clock, contact } = made()
  expect(contact.mayLackChanges).toBe(true)
  clock.advance(3_000)
  contact.answered()
  expect([contact.mayLackChanges, contact.ageMs]).toEqual([true, 3_000])
  contact.polled()
  expect([contact.mayLackChanges, contact.ageMs]).toEqual([false, 0])
})

test('while a poll waits, answers to other calls show that nothing is missing', () => {
  const { clock, contact } = made()
  contact.polled()
  for (let beats = 0; beats < 9; beats += 1) {
    clock.advance(2_000)
    expect(contact.mayLackChanges).toBe(false)
    contact.answered()
  }
  clock.advance(5_001)
  expect([contact.mayLackChanges, contact.ageMs]).toEqual([true, 5_001])
})

test('after a poll failed, only another poll shows that nothing is missing', () => {
  const { clock, contact } = made()
  contact.polled()
  contact.lost()
  expect(contact.mayLackChanges).toBe(true)
  clock.advance(1_000)
  contact.answered()
  expect([contact.mayLackChanges, contact.ageMs]).toEqual([true, 1_000])
  contact.polled()
  expect(contact.mayLackChanges).toBe(false)
})
