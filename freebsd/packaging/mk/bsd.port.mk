# SPDX-License-Identifier: BSD-2-Clause
#
# Takes the place of the ports tree's file of this name where a port's
# variables are read and nothing is built: freebsd/packaging/port.py.
PREFIX?=	/usr/local
PKGBASE=	${PKGNAMEPREFIX}${PORTNAME}${PKGNAMESUFFIX}
PKGORIGIN=	${CATEGORIES:[1]}/${PKGBASE}
