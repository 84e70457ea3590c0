import { Link } from '@tanstack/react-router'
import { type Range, ranges } from '../api/series.ts'
import { TabBar, tabClass } from '../design/tabs.tsx'

const names: Readonly<Record<Range, string>> = { '1h': '1 hour', '12h': '12 hours', '2d': '2 days', '30d': '30 days' }

/** How far back the charts of a screen go: links, so that the address says it. */
export function RangeTabs({ range: current }: { readonly range: Range }) {
  return (
    <TabBar label="How far back">
      {(Object.keys(ranges) as Range[]).map((range) => (
        <Link
          key={range}
          to="."
          search={(search) => ({ ...search, range })}
          replace
          className={tabClass}
          aria-current={range === current ? 'page' : undefined}
        >
          {names[range]}
        </Link>
      ))}
    </TabBar>
  )
}
