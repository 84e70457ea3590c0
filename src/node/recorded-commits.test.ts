import { expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { newId } from '#model/id.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { RecordedCommits } from './recorded-commits.ts'

const database = newId()

function made() {
  const clock = new ManualClock()
  const known = new RecordedCommits({
    path: '/nowhere',
    files: systemFiles,
    clock,
    logger: createLogger('test', 'silent'),
  })
  const says = (commits: number) => known.compared({ database, commits })
  const send = (added: number, commits: number, of = database) =>
    known.whenSent(async () => ({ new: added, total: { database: of, commits } }))
  return { known, says, send, clock }
}

test('is compared after control was out of reach', async () => {
  const { known, says, send } = made()
  expect(known.toCompare()).toEqual({ recorded: null })
  says(5)
  await send(2, 7)
  // An answer was lost: one of them was known.
  await send(1, 9)
  expect(known.toCompare()).toEqual({})
  known.lostContact()
  expect(known.toCompare()).toEqual({ recorded: { database, commits: 9 } })
})

test('is compared once a minute: control may have moved to an older database without being out of reach', async () => {
  const { known, says, send, clock } = made()
  says(5)
  clock.advance(59_999)
  expect(known.toCompare()).toEqual({})
  await send(1, 6)
  clock.advance(1)
  expect(known.toCompare()).toEqual({ recorded: { database, commits: 6 } })
  says(6)
  expect(known.toCompare()).toEqual({})
})

test('new commits do not hide that the database lost others', async () => {
  const { known, says, send } = made()
  says(8)
  // It went back from 8 to 3, and gets 9 that waited: more than it had.
  await send(9, 12)
  expect(known.toCompare()).toEqual({ recorded: { database, commits: 17 } })
  await send(1, 13)
  expect(known.toCompare()).toEqual({ recorded: { database, commits: 18 } })
  says(13)
  await send(1, 14)
  expect(known.toCompare()).toEqual({})
})

test('nothing is lost that control has noted meanwhile, or in another database', async () => {
  const { known, says } = made()
  says(8)
  await known.whenSent(async () => {
    says(3)
    return { new: 9, total: { database, commits: 12 } }
  })
  expect(known.toCompare()).toEqual({})
  const other = newId()
  await known.whenSent(async () => ({ new: 1, total: { database: other, commits: 1 } }))
  expect(known.toCompare()).toEqual({})
  known.lostContact()
  expect(known.toCompare()).toEqual({ recorded: { database: other, commits: 1 } })
})
