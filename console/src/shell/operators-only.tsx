import { useLocation } from '@tanstack/react-router'
import { Lock } from 'lucide-react'
import type { ReactNode } from 'react'
import { EmptyState } from '../design/empty-state.tsx'
import { Page } from '../design/layout.tsx'
import { useHere } from './session.tsx'

/** Screens of the installation are for its operators. The API would refuse each call of others. */
export function OperatorsOnly({ children }: { readonly children: ReactNode }) {
  const { session } = useHere()
  const { pathname } = useLocation()
  if (session.person.is_operator || !pathname.startsWith('/operate')) return children
  return (
    <Page title="Operations">
      <EmptyState icon={<Lock />} title="Only operators of the installation can see this">
        <p>It is about all accounts and machines. Ask an operator to look for you.</p>
      </EmptyState>
    </Page>
  )
}
