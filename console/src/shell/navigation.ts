import {
  Building2,
  Cylinder,
  FileKey2,
  History,
  KeyRound,
  LayoutDashboard,
  type LucideIcon,
  Plus,
  Radio,
  ScrollText,
  Server,
  ShieldCheck,
  Table2,
  Telescope,
  Users,
} from 'lucide-react'
import type { Role } from '../api/session.ts'

export type Place = {
  readonly label: string
  /** Below the account's address, or below `/operate`. */
  readonly path: string
  readonly icon: LucideIcon
  /** Other words by which the command palette finds it. */
  readonly words: string
  /** The least role; operators' places have none. */
  readonly role?: Role
}

export type PlaceGroup = { readonly label: string; readonly places: readonly Place[] }

/** Screens of an account, in the order in which data flows, then those of the account itself. */
export const accountPlaces: readonly PlaceGroup[] = [
  {
    label: 'Data',
    places: [
      { label: 'Overview', path: '', icon: LayoutDashboard, words: 'home start dashboard' },
      { label: 'Endpoints', path: 'endpoints', icon: Radio, words: 'ingest host commits records test event' },
      { label: 'Views', path: 'views', icon: Table2, words: 'tables columns types definitions versions canary' },
      { label: 'Data quality', path: 'quality', icon: ShieldCheck, words: 'dlq dead letters drift columns rejected nulls casts' },
      { label: 'Jobs', path: 'jobs', icon: History, words: 'backfill redrive re-drive progress' },
      { label: 'Destinations', path: 'destinations', icon: Cylinder, words: 'buckets s3 storage roles policies validate' },
      { label: 'Explore', path: 'explore', icon: Telescope, words: 'sql query rows select chart' },
    ],
  },
  {
    label: 'Account',
    places: [
      { label: 'API keys', path: 'keys', icon: KeyRound, words: 'tokens credentials create revoke', role: 'member' },
      { label: 'Secrets', path: 'secrets', icon: FileKey2, words: 'hmac hash keys views pseudonyms', role: 'member' },
      { label: 'People', path: 'people', icon: Users, words: 'members invitations roles owner viewer team' },
      { label: 'Audit trail', path: 'audit', icon: ScrollText, words: 'log events history who changed', role: 'member' },
    ],
  },
]

/** Screens for operators of the installation. */
export const operatorPlaces: readonly PlaceGroup[] = [
  {
    label: 'Operate',
    places: [
      { label: 'Nodes', path: 'nodes', icon: Server, words: 'machines regions health disk join tokens segments' },
      { label: 'Accounts', path: 'accounts', icon: Building2, words: 'tenants customers quotas limits suspend' },
      { label: 'Sign-ins and audit', path: 'audit', icon: ScrollText, words: 'log events failed sign-in history' },
    ],
  },
]

/** Actions of the command palette beside places, each below the same address as those. */
export const accountActions: readonly Place[] = [
  { label: 'Create key', path: 'keys/new', icon: Plus, words: 'api token new', role: 'member' },
  { label: 'Create secret', path: 'secrets/new', icon: Plus, words: 'hmac hash key new', role: 'member' },
  { label: 'Create view', path: 'views/new', icon: Plus, words: 'table definition new suggest', role: 'member' },
  { label: 'Create destination', path: 'destinations/new', icon: Plus, words: 'bucket s3 new', role: 'member' },
]

export const operatorActions: readonly Place[] = [
  { label: 'Add a node', path: 'nodes/join', icon: Plus, words: 'join token machine new' },
  { label: 'Create account', path: 'accounts/new', icon: Plus, words: 'tenant customer new' },
]
