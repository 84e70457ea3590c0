import { Link } from '@tanstack/react-router'
import { Compass } from 'lucide-react'
import { EmptyState } from '../design/empty-state.tsx'
import { Page } from '../design/layout.tsx'

export function NotFound() {
  return (
    <Page title="Nothing here">
      <EmptyState icon={<Compass />} title="This address leads nowhere" action={<Link to="/">Go to the overview</Link>}>
        <p>What was here may have been removed, or the link is incomplete.</p>
      </EmptyState>
    </Page>
  )
}
