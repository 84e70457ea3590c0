import { Link, useLocation } from '@tanstack/react-router'
import { Menu as MenuIcon, Search } from 'lucide-react'
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react'
import { Button, IconButton } from '../design/button.tsx'
import { AccountSwitch } from './account-switch.tsx'
import style from './frame.module.css'
import type { Place } from './navigation.ts'
import { OpenPalette } from './open-palette.tsx'
import { type OpenGroup, useOpenPlaces } from './open-places.ts'
import { PersonMenu } from './person-menu.tsx'

// It comes with its first use: nobody needs it to see the first screen.
const Drawer = lazy(() => import('./drawer.tsx').then(({ Drawer: component }) => ({ default: component })))

type PaletteState = 'never' | { readonly open: boolean; readonly opener: Element | null }

/** Remembers what has the focus, unless the palette has it already. */
function opened(state: PaletteState): PaletteState {
  return state !== 'never' && state.open ? state : { open: true, opener: document.activeElement }
}

/** The frame of every screen: where one is, where one can go. */
export function Frame({ children }: { readonly children: ReactNode }) {
  const [palette, setPalette] = useState<PaletteState>('never')
  const [drawerOpen, setDrawerOpen] = useState<boolean | 'never'>('never')
  const { pathname } = useLocation()
  const closeDrawer = () => setDrawerOpen((open) => (open === 'never' ? open : false))
  // biome-ignore lint/correctness/useExhaustiveDependencies: the drawer closes because the place changed
  useEffect(closeDrawer, [pathname])
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return
      event.preventDefault()
      setPalette(opened)
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [])
  const openPalette = () => {
    closeDrawer()
    setPalette(opened)
  }
  return (
    <div className={style.frame}>
      <a className={style.skip} href="#content">
        Skip to content
      </a>
      <header className={style.bar}>
        <IconButton
          label="Menu"
          look="quiet"
          aria-haspopup="dialog"
          aria-expanded={drawerOpen === true}
          onClick={() => setDrawerOpen(true)}
        >
          <MenuIcon aria-hidden="true" />
        </IconButton>
        <AccountSwitch />
      </header>
      <aside className={style.side}>
        <Sidebar onSearch={openPalette} />
      </aside>
      <main id="content" className={style.content} tabIndex={-1}>
        {children}
      </main>
      {drawerOpen !== 'never' && (
        <Suspense fallback={null}>
          <Drawer open={drawerOpen} onClose={closeDrawer}>
            <Sidebar onSearch={openPalette} />
          </Drawer>
        </Suspense>
      )}
      {palette !== 'never' && <OpenPalette {...palette} onClose={() => setPalette({ ...palette, open: false })} />}
    </div>
  )
}

function Sidebar({ onSearch }: { readonly onSearch: () => void }) {
  return (
    <div className={style.sidebar}>
      <AccountSwitch />
      <Button look="plain" size="small" wide icon={<Search aria-hidden="true" />} onClick={onSearch}>
        <span className={style.search}>Go to…</span>
        <kbd className={style.keys}>Ctrl K</kbd>
      </Button>
      {useOpenPlaces().map((group) => (
        <Group key={group.label} group={group} />
      ))}
      <div className={style.foot}>
        <PersonMenu />
      </div>
    </div>
  )
}

function Group({ group: { label, places, base } }: { readonly group: OpenGroup }) {
  return (
    <nav aria-label={label}>
      <div className={style.groupLabel} aria-hidden="true">
        {label}
      </div>
      <ul>
        {places.map((place) => (
          <PlaceLink key={place.path} place={place} base={base} />
        ))}
      </ul>
    </nav>
  )
}

function PlaceLink({ place: { label, path, icon: Icon }, base }: { readonly place: Place; readonly base: string }) {
  return (
    <li>
      <Link to={path === '' ? base : `${base}/${path}`} activeOptions={{ exact: path === '' }} className={style.place}>
        <Icon aria-hidden="true" />
        {label}
      </Link>
    </li>
  )
}
