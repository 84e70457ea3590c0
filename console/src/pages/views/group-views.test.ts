import { expect, test } from 'vitest'
import type { ViewWithUsage } from '../../api/views.ts'
import { groupViews, matchesView } from './group-views.ts'

function version(name: string, number: number, status: ViewWithUsage['status'], usage_count = 0): ViewWithUsage {
  return {
    id: `${name}-${number}`,
    name,
    version: number,
    definition: { columns: [] },
    format: 'yaml',
    status,
    description: `About ${name}`,
    tags: ['Sales'],
    created_by: 'cli',
    created_at: '2026-11-20T08:00:00.000Z',
    published_at: null,
    usage_count,
  }
}

test('the current version is the latest published one, and a later draft stands beside it', () => {
  const [orders, users] = groupViews([
    version('users', 1, 'draft'),
    version('orders', 3, 'draft'),
    version('orders', 2, 'published', 2),
    version('orders', 1, 'published', 1),
  ])
  expect(orders).toMatchObject({ name: 'orders', attachments: 3, current: { version: 2 }, draft: { version: 3 } })
  expect(orders?.versions.map(({ version: number }) => number)).toEqual([3, 2, 1])
  expect(users).toMatchObject({ current: { version: 1, status: 'draft' }, draft: undefined })
})

test('a view is found by its name, description and tags, whatever their case', () => {
  const [orders] = groupViews([version('orders', 1, 'published')])
  if (orders === undefined) throw new Error('no view')
  expect(['ORD', 'about', ' sales ', ''].map((text) => matchesView(orders, text))).toEqual([true, true, true, true])
  expect(matchesView(orders, 'users')).toBe(false)
})
